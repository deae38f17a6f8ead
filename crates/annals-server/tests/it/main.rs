//! The server as its clients see it, over sockets of this machine.

#![allow(clippy::unwrap_used, reason = "a test that fails should panic")]
#![allow(clippy::disallowed_methods, reason = "a proxy and real clients wait for real")]

mod arrow;
mod backup;
mod bounded;
mod calls;
mod connections;
mod cuts;
mod described;
mod effort;
mod erased;
mod explored;
mod feeds;
mod files;
mod guarded;
mod lazy;
mod leaving;
mod limits;
mod museum;
mod nodes;
mod order;
mod proxy;
mod requests;
mod rows;
mod running;
mod secure;
mod sql;
mod statuses;
mod steps;
mod streamed;
mod subscriptions;
mod suite;
mod tokens;
mod told;
mod transactions;
mod unread;
mod web;
