//! The kinds of faults.

use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};

use super::ledger::Ledger;
use super::machines::World;
use super::network::cut;
use super::{COUNT, below, millis, pause};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The leader believes that it leads, and nodes reach it.
    LeaderAlone,
    /// Nobody reaches the leader.
    LeaderGone,
    /// The other servers hear the leader, and it doesn't hear them.
    LeaderDeaf,
    /// The leader hears the others, and they don't hear it.
    LeaderMute,
    /// One follower doesn't hear the leader.
    FollowerDeaf,
    FollowerAlone,
    NodeAlone,
    /// Servers hear the node, and it doesn't hear them.
    NodeDeaf,
    /// The node hears the servers, and they don't hear it.
    NodeMute,
    NodeWithoutLeader,
    KilledLeader,
    KilledFollower,
    KilledServers,
    StoppedLeader,
    StoppedFollower,
    KilledNode,
    StoppedNode,
    ClockAhead,
    ClockBehind,
    /// A log of three servers stands the damage of one: it is always the same.
    FlippedBlock,
    FullDiskOfNode,
    FullDiskOfServer,
}

/// The server whose messages are damaged.
const DAMAGED: usize = 0;

/// A fault that was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hurt {
    pub(super) fault: Fault,
    pub(super) ended: Duration,
    /// True if nothing else happens for a while.
    pub(super) is_last: bool,
}

impl Fault {
    /// Returns each kind that is possible here.
    pub(super) fn all(world: &World) -> Vec<Self> {
        let mut all = vec![
            Self::LeaderAlone,
            Self::LeaderGone,
            Self::LeaderDeaf,
            Self::LeaderMute,
            Self::FollowerDeaf,
            Self::FollowerAlone,
            Self::NodeAlone,
            Self::NodeDeaf,
            Self::NodeMute,
            Self::NodeWithoutLeader,
            Self::KilledLeader,
            Self::KilledFollower,
            Self::KilledServers,
            Self::StoppedLeader,
            Self::StoppedFollower,
            Self::KilledNode,
            Self::StoppedNode,
            Self::FlippedBlock,
            Self::FullDiskOfNode,
            Self::FullDiskOfServer,
        ];
        if world.has_clocks() {
            all.extend([Self::ClockAhead, Self::ClockBehind]);
        }
        all
    }

    /// Hurts, waits, and heals.
    pub(super) fn hurt(self, world: &mut World, ledger: &Ledger, is_last: bool) -> Hurt {
        let leader = world.leader();
        let (follower, node) = ((leader + 1 + random(2)) % COUNT, random(COUNT));
        eprintln!(
            "{:6.0} s: {self:?} (leader s{leader}, follower s{follower}, node n{node})",
            SystemClock.elapsed().as_secs_f64()
        );
        self.begin(world, leader, follower, node);
        if self == Self::FullDiskOfNode {
            ledger.send_large(&world.addresses(), node);
        }
        pause(millis(2000 + below(6000)));
        self.end(world, leader, follower, node);
        Hurt { fault: self, ended: SystemClock.elapsed(), is_last }
    }

    fn begin(self, world: &mut World, leader: usize, follower: usize, node: usize) {
        let World { servers, nodes, .. } = world;
        let (lead, follow) = (&servers[leader].machine, &servers[follower].machine);
        let others = servers.iter().map(|it| &it.machine).filter(|it| it.name != lead.name);
        match self {
            Self::LeaderAlone => others.for_each(|it| cut(lead, it)),
            Self::LeaderGone => {
                others.for_each(|it| cut(lead, it));
                nodes.iter().for_each(|it| cut(lead, &it.machine));
            }
            Self::LeaderDeaf => others.for_each(|it| lead.ignore(it)),
            Self::LeaderMute => others.for_each(|it| it.ignore(lead)),
            Self::FollowerDeaf => follow.ignore(lead),
            Self::FollowerAlone => servers
                .iter()
                .filter(|it| it.machine.name != follow.name)
                .for_each(|it| cut(follow, &it.machine)),
            Self::NodeAlone => servers.iter().for_each(|it| cut(&nodes[node].machine, &it.machine)),
            Self::NodeDeaf => servers.iter().for_each(|it| nodes[node].machine.ignore(&it.machine)),
            Self::NodeMute => servers.iter().for_each(|it| it.machine.ignore(&nodes[node].machine)),
            Self::NodeWithoutLeader => cut(&nodes[node].machine, lead),
            Self::KilledLeader => servers[leader].kill(),
            Self::KilledFollower => servers[follower].kill(),
            Self::KilledServers => servers.iter_mut().for_each(super::machines::Process::kill),
            Self::StoppedLeader => servers[leader].signal("STOP"),
            Self::StoppedFollower => servers[follower].signal("STOP"),
            Self::KilledNode => nodes[node].kill(),
            Self::StoppedNode => nodes[node].signal("STOP"),
            Self::ClockAhead => nodes[node].set_clock(30),
            Self::ClockBehind => nodes[node].set_clock(-3600),
            Self::FlippedBlock => {
                servers[DAMAGED].kill();
                servers[DAMAGED].flip();
            }
            Self::FullDiskOfNode => nodes[node].fill(),
            Self::FullDiskOfServer => servers[leader].fill(),
        }
    }

    fn end(self, world: &mut World, leader: usize, follower: usize, node: usize) {
        match self {
            Self::KilledLeader => world.start_server(leader),
            Self::KilledFollower => world.start_server(follower),
            Self::FlippedBlock => world.start_server(DAMAGED),
            Self::KilledServers => (0..COUNT).for_each(|number| world.start_server(number)),
            Self::StoppedLeader => world.servers[leader].signal("CONT"),
            Self::StoppedFollower => world.servers[follower].signal("CONT"),
            Self::KilledNode => world.start_node(node),
            Self::StoppedNode => world.nodes[node].signal("CONT"),
            Self::ClockAhead | Self::ClockBehind => world.nodes[node].set_clock(0),
            Self::FullDiskOfNode => world.nodes[node].empty(),
            Self::FullDiskOfServer => {
                // JetStream is off on a server once its disk was full, until that begins again.
                world.servers[leader].empty();
                world.servers[leader].kill();
                world.start_server(leader);
            }
            _ => world.heal(),
        }
    }
}

fn random(limit: usize) -> usize {
    usize::try_from(below(limit as u64)).unwrap()
}
