//! Deliberate mistakes in commit, recovery and backfill, so that tests can show that each is found.
//!
//! Each belongs to a [`step!`](crate::step), which a test leaves out or replaces. `docs/crash.md` lists the effect of
//! each mistake and the test that finds it.

/// Declares the mistakes, and [`Mistake::ALL`] with them.
macro_rules! mistakes {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// A mistake in commit, recovery or backfill.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Mistake {
            $($(#[$doc])+ $name,)+
        }

        impl Mistake {
            /// All mistakes.
            pub const ALL: [Self; [$(stringify!($name)),+].len()] = [$(Self::$name),+];
        }
    };
}

mistakes! {
    /// A `Checksummed` commit is acknowledged without a flush.
    CommitNotFlushed,
    /// The slot is written before the flush that covers its point.
    SlotBeforeFlush,
    /// Frames claim the written position, not the flushed one, as durable.
    UnflushedClaimed,
    /// Recovery writes both slots without a flush between them, so that a crash can tear both.
    SlotsAtOnce,
    /// The handle continues after a flush failed, and tries it again.
    FailedFlushForgotten,
    /// A frame is accepted without its chain.
    TornFrameAccepted,
    /// A commit can be seen before its level is reached.
    SeenBeforeFlush,
    /// Replay keeps the events of a transaction that has no commit frame.
    UncommittedApplied,
    /// A commit whose events don't apply is left out, and the file is open for writing.
    UnappliedIgnored,
    /// Recovery assumes that the bytes it reads are on the disk.
    AcceptedNotRewritten,
    /// Recovery leaves the tail where it is.
    TailNotZeroed,
    /// Recovery writes the slots before it has flushed up to their points.
    RecoveryNotFlushed,
    /// A rollback leaves the frames that were written already.
    RollbackNotZeroed,
    /// A rollback writes the slots before it has flushed up to their points.
    RollbackNotFlushed,
    /// Returning to a savepoint leaves the frames that were written since.
    SavepointNotCut,
    /// A hard checkpoint returns before its slot is flushed.
    HardSlotNotFlushed,
    /// A new journal's name is not flushed.
    NameNotFlushed,
    /// A two-phase commit is acknowledged without its second flush.
    SecondFlushLeftOut,
    /// A soft commit is acknowledged, with all before it, while a durable one is pending.
    SoftOvertakes,
    /// Commits that wait for a flush are acknowledged also if it fails.
    FailedGroupAcknowledged,
    /// Opening doesn't look after the first position that doesn't verify.
    TailNotLookedAt,
    /// The cut bytes are read only once.
    CutReadOnce,
    /// Recovery cuts the frames that alone prove how far the rest was flushed, before a slot records it.
    ProofCutFirst,
    /// In shared mode a rollback doesn't set the suspect mark before it begins.
    CutNotMarked,
    /// In shared mode the suspect mark is ignored.
    SuspectTrusted,
    /// In shared mode a process continues from the end that it knows.
    OthersNotLookedAt,
    /// In shared mode a process closes the journal though others have it open.
    ClosedAmongOthers,
    /// In shared mode the turn ends before the commit is acknowledged.
    TurnEndedEarly,
    /// In shared mode a failed flush outside of a transaction isn't marked.
    FailedFlushNotTold,
    /// A new segment gets the path before it is flushed.
    NextNotFlushed,
    /// The kept name of a sealed segment is not flushed before the path refers to another file.
    KeptNameNotFlushed,
    /// The path refers to the next segment before the seal is flushed.
    SealNotFlushed,
    /// An interrupted restart is finished without writing the seal again.
    SealNotRewritten,
    /// A restart returns before the directory is flushed.
    RestartNotFlushed,
    /// A kept segment is taken for the one before another without its chain.
    BorderNotVerified,
    /// Older segments are removed before the state in the new one is flushed.
    StateNotFlushed,
    /// A segment with readers is removed.
    PinsIgnored,
    /// In shared mode a process continues writing a segment that was sealed.
    SealIgnored,
    /// A backfill writes a view over an older root than the newest.
    OutdatedBoundTaken,
    /// A backfill writes changes that the journal may still lose.
    ImageBeforeJournal,
    /// A backfill's root is published without a flush.
    RootNotFlushed,
    /// A backfill's root is written into both slots before the flush.
    RootSlotsAtOnce,
    /// The second copy of a root is written before the flush.
    RootCopiesAtOnce,
    /// A backfill's root gets the number of the one before.
    RootNumberRepeated,
    /// A backfill takes pages that may still be appended to as they are.
    BlanksIgnored,
    /// After a backfill the store drops pages that have changed since.
    ChangedPageDropped,
    /// A backfill doesn't look whether its writes succeeded.
    ImageErrorDropped,
    /// A backfill publishes its root before the last of its writes.
    PublishedBeforeWritten,
    /// A failed backfill makes commits fail too.
    FailedBackfillPoisons,
    /// A backfill continues with an image whose flush failed.
    FailedImageFlushForgotten,
    /// The store continues from a root before it is published.
    InstalledBeforePublished,
    /// A backfill overwrites space that only the root before the last one reaches.
    OlderRootWrittenOver,
    /// A backfill overwrites space that only snapshots reach.
    PinnedRootWrittenOver,
    /// A backfill overwrites space that only key frames reach.
    KeyFrameWrittenOver,
    /// Unreachable space of an image isn't reused.
    FreedSpaceForgotten,
    /// A root counts by its first copy, without verifying what its backfill wrote.
    FirstCopyTrusted,
    /// A root that was found by its first copy is completed without rewriting what it reaches.
    FirstCopyNotRewritten,
    /// Spilled pages of a committed transaction aren't kept for its views.
    SpillNotShown,
    /// A view over spilled pages pins only the root below.
    SpillNotPinned,
    /// A page of the image is used that doesn't have its checksum.
    DamagedPageUsed,
    /// A root of the image is published that reaches known damage.
    DamagePublished,
    /// A journal is written that ends before a point of a root of the image.
    WitnessIgnored,
    /// A key frame that reaches known damage stays listed.
    DamagedFrameListed,
    /// A state that lies over a lost page counts as opened again, and isn't.
    LostStateKept,
    /// A state is opened again as of its root, without the journal after that.
    OtherStateOpened,
    /// A root that was found by its first copy is made whole without the file's length.
    LengthNotRewritten,
    /// An image counts whose point the journal doesn't have.
    OtherHistoryTrusted,
    /// A frame's claim counts without a tag made with the secret of the file.
    TagNotChecked,
    /// Opening for writing keeps the secret that is in the file.
    SecretKept,
    /// Frames get no random nonce, so that their hashes have a seed that is known.
    NonceNotRandom,
    /// On a device only one slot has the end of new space before a frame is written there.
    SpaceToldOnce,
    /// A slot counts only if both of its copies agree.
    CopiesMustAgree,
    /// The flushed position in the live block is ignored as a witness.
    LiveIgnored,
    /// A frame with a wrong stored chain ends the journal, though a slot has the right one.
    WrongChainRefused,
    /// A tail is cut without a second look.
    TailCutAtOnce,
    /// The chain of a slot isn't compared with the frame that ends there.
    SlotChainIgnored,
    /// Bytes that were known to be flushed, and don't verify, are cut like a tail.
    DamageCut,
    /// A file of which no slot can be read is opened for writing.
    SlotlessWritten,
    /// The durable positions in frames are ignored as witnesses.
    ClaimsIgnored,
    /// After a gap, salvage takes any frame that verifies by itself.
    UnprovenTaken,
    /// In shared mode a process writes zeros ahead from where it had left them, whatever others wrote since.
    OthersZeroed,
}

thread_local!(static MADE: std::cell::Cell<Option<Mistake>> = const { std::cell::Cell::new(None) });

/// Makes this thread commit a mistake from now on, or none.
pub fn make(mistake: Option<Mistake>) {
    MADE.set(mistake);
}

/// True if this thread makes this mistake.
#[must_use]
pub fn is_made(mistake: Mistake) -> bool {
    MADE.get() == Some(mistake)
}
