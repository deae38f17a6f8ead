//! The suite of connections, over a socket.

use std::sync::{Arc, Mutex};

use annals::Database;
use annals_replica::{Connection, Http, testing};
use annals_server::Server;

use crate::effort::tries;
use crate::proxy::Proxy;
use crate::running::Running;

fn serve(origin: &Database) -> Running {
    Running::start(Server::new().database("origin", origin.clone()).unwrap().open_to_all())
}

#[test]
fn a_server_is_a_connection() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Mutex::new(Vec::new());
    testing::run(folder.path(), &|origin| {
        let running = serve(origin);
        let connection = Http::new(&running.of("origin"), None).unwrap();
        servers.lock().unwrap().push(running);
        Arc::new(connection) as Arc<dyn Connection>
    });
}

#[test]
fn a_server_is_a_connection_whatever_befalls_pushes_on_their_way() {
    let (seeds, mut faults) = (tries(1, 50), 0);
    for seed in 0..seeds {
        let folder = tempfile::tempdir().unwrap();
        let servers = Mutex::new(Vec::new());
        testing::run(folder.path(), &|origin| {
            let running = serve(origin);
            let proxy = Proxy::start(running.address);
            proxy.follow_pushes(seed, 25);
            let connection = Http::new(&proxy.of("origin"), None).unwrap();
            servers.lock().unwrap().push((running, proxy));
            Arc::new(connection) as Arc<dyn Connection>
        });
        faults += servers.lock().unwrap().iter().map(|(_, proxy)| proxy.faults()).sum::<u64>();
    }
    assert!(faults > 20 * seeds, "only {faults} faults with {seeds} seeds");
}
