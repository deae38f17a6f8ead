//! The certificate that a server shows, and the key that proves it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// What a server needs for TLS. It was read once: a new certificate needs a new start.
#[derive(Clone)]
pub struct Identity {
    config: Arc<ServerConfig>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// Reads a chain of certificates, the server's own first, and its private key, both as PEM.
    ///
    /// # Errors
    /// `InvalidData`: a file holds something else, or they don't belong to each other; those of reading the files.
    pub fn read(certificates: impl AsRef<Path>, key: impl AsRef<Path>) -> io::Result<Self> {
        let (certificates, key) = (certificates.as_ref(), key.as_ref());
        let wrong = |path: &Path, why: &dyn std::fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
        };
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_file_iter(certificates).and_then(Iterator::collect);
        let chain = chain.map_err(|error| wrong(certificates, &error))?;
        if chain.is_empty() {
            return Err(wrong(certificates, &"holds no certificate as PEM"));
        }
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = versions.map_err(|error| wrong(certificates, &error))?;
        let config = builder.with_no_client_auth().with_single_cert(chain, private);
        let mut config = config.map_err(|error| wrong(certificates, &error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config) })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}
