//! The suite of connections, over a socket.

use std::sync::{Arc, Mutex};

use annals_replica::{Connection, Http, testing};
use annals_server::Server;

use crate::running::Running;

#[test]
fn a_server_is_a_connection() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Mutex::new(Vec::new());
    testing::run(folder.path(), &|origin| {
        let server = Server::new().database("origin", origin.clone()).unwrap().open_to_all();
        let running = Running::start(server);
        let connection = Http::new(&running.of("origin"), None).unwrap();
        servers.lock().unwrap().push(running);
        Arc::new(connection) as Arc<dyn Connection>
    });
}
