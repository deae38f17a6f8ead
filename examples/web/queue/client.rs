//! As much of an HTTP client as the demonstration and the tests need.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

/// Sends a request, and returns the status and the body.
pub(crate) fn request(
    server: SocketAddr,
    method: &str,
    path: &str,
    body: &Value,
) -> std::io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect(server)?;
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::InvalidData)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = serde_json::from_str(body).unwrap_or_else(|_| body.into());
    Ok((status.ok_or(std::io::ErrorKind::InvalidData)?, body))
}
