//! The reports of maintenance: of backfills, restarts, packing and forgetting, and the figures of an open database.

pub use crate::db::{
    BackfillOutcome, BackfillPhases, BackfillProgress, CacheStats, Forgotten, Latencies,
    MemoryStats, Older, OldestReader, OldestState, Packed, Restarted, Restarting,
};
