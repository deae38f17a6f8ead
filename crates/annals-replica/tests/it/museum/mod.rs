//! Bugs of other systems in copies, archives and the network, as tests: each is named after its story, with the link.

mod archives;
mod replicas;
