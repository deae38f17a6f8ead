#!/bin/sh
# Makes an authority, and one certificate for all servers and nodes, in certs/.
set -eu
cd "$(dirname "$0")"
mkdir -p certs
cd certs
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
    -subj "/CN=annals" -keyout ca-key.pem -out ca.pem
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=annals servers" \
    -keyout server-key.pem -out server.csr
names="subjectAltName=DNS:n1,DNS:n2,DNS:n3,DNS:a,DNS:b,DNS:localhost,IP:127.0.0.1"
printf '%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$names" > names
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 825 \
    -extfile names -out server.pem
rm names server.csr
chmod 600 ca-key.pem server-key.pem
