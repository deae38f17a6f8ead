//! A page of a size, with a word on it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::engines::Failure;

/// Serves a page of so many bytes until the process ends; returns its address.
pub(super) fn serve(size: u64) -> Result<String, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/", listener.local_addr()?);
    let filling = " ".repeat(usize::try_from(size)?);
    let body = format!("<!doctype html><title>empty</title><p>empty<!--{filling}-->");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A browser that goes away is no matter.
            let _gone = answer(stream, &body);
        }
    });
    Ok(url)
}

fn answer(mut stream: TcpStream, body: &str) -> std::io::Result<()> {
    let mut request = [0; 4096];
    let _request = stream.read(&mut request)?;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
