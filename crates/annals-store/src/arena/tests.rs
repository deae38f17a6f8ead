//! Pages are disjoint, counted, reused and freed.

use std::collections::HashSet;

use super::pool::{KEPT, SMALL};
use super::*;
use annals_simulated::Rng;

/// Writes a number all over a page.
fn fill(page: &PageRef, number: u8) {
    // SAFETY: the test has the page alone.
    unsafe { page.bytes().as_ptr().write_bytes(number, PAGE) };
}

/// True if all of a page is this number.
fn is_full_of(page: &PageRef, number: u8) -> bool {
    // SAFETY: no thread writes to the page.
    let bytes = unsafe { std::slice::from_raw_parts(page.bytes().as_ptr(), PAGE) };
    // Miri takes a second for a page.
    bytes.iter().step_by(if cfg!(miri) { 101 } else { 1 }).all(|&byte| byte == number)
}

#[test]
fn pages_are_apart_and_know_their_tags() {
    let count = if cfg!(miri) { 5 } else { 2 * PAGES };
    let pages: Vec<_> = (0..count).map(|tag| PageRef::take(tag as u64).page).collect();
    let places: HashSet<_> = pages.iter().map(|page| page.bytes().addr().get()).collect();
    assert_eq!(places.len(), count);
    for (number, page) in pages.iter().enumerate() {
        let at = page.bytes().addr().get();
        assert!(at.is_multiple_of(64) && at % CHUNK >= FIRST && at % CHUNK <= CHUNK - PAGE);
        fill(page, (number as u64).to_le_bytes()[0]);
    }
    for (tag, page) in pages.iter().enumerate() {
        assert!(page.tag() == tag as u64 && is_full_of(page, (tag as u64).to_le_bytes()[0]));
    }
}

#[test]
fn a_page_stays_as_long_as_anybody_has_it() {
    let page = PageRef::take(7).page;
    fill(&page, 3);
    let other = page.clone();
    assert!(page.is(&other));
    drop(page);
    let mut others: Vec<_> = (0..50).map(|_| PageRef::take(8).page).collect();
    others.iter().for_each(|page| fill(page, 9));
    assert!(!others.iter().any(|page| page.is(&other)));
    assert!(other.tag() == 7 && is_full_of(&other, 3));
    others.clear();
    drop(other);
}

#[test]
fn only_pages_that_nobody_has_used_are_taken_for_zeros() {
    for _ in 0..3 {
        let pages: Vec<_> = (0..20).map(|_| PageRef::take(1)).collect();
        for Taken { page, is_zeros } in &pages {
            assert!(!is_zeros || is_full_of(page, 0));
            fill(page, 255);
        }
    }
}

#[test]
fn chunks_that_are_empty_are_given_back() {
    let count = if cfg!(miri) { 4 } else { 20 };
    // A pool of its own: other tests use that of the process meanwhile.
    let mut pool = Pool::new();
    let take = |pool: &mut Pool| {
        let chunk = pool.next().unwrap_or_else(|| {
            let (chunk, _) = ChunkPlace::new(Origin::here().process(), false);
            pool.add(chunk, None);
            chunk
        });
        (chunk, pool.take_of(chunk).0)
    };
    let mut pages: Vec<_> = (0..count * PAGES).map(|_| take(&mut pool)).collect();
    assert_eq!((pool.chunks, pool.empty), (count, 0));
    // All but a few, in no order.
    let mut rng = Rng::new(1);
    while pages.len() > count / 10 * PAGES {
        let (chunk, index) = pages.swap_remove(rng.index(pages.len()));
        drop(pool.give_back(chunk, index));
    }
    // Free pages are used before new ones.
    let many = pool.chunks;
    pages.extend((0..count / 2 * PAGES).map(|_| take(&mut pool)));
    assert!(pool.chunks <= many, "{} after {many}", pool.chunks);
    for (chunk, index) in pages {
        drop(pool.give_back(chunk, index));
    }
    assert_eq!((pool.chunks, pool.empty), (KEPT, KEPT));
    // The last ones, which no page keeps any more.
    while let Some(chunk) = pool.next() {
        let (index, _) = pool.take_of(chunk);
        pool.empty = KEPT;
        drop(pool.give_back(chunk, index));
    }
}

#[test]
fn threads_drop_what_others_took() {
    let (threads, rounds) = if cfg!(miri) { (3, 4) } else { (4, 2000) };
    let page = PageRef::take(5).page;
    fill(&page, 5);
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel::<(u8, PageRef)>();
        for number in 1..=threads {
            let (sender, page) = (sender.clone(), page.clone());
            scope.spawn(move || {
                for _ in 0..rounds {
                    let own = PageRef::take(u64::from(number)).page;
                    // SAFETY: this thread has the page alone.
                    unsafe { own.bytes().as_ptr().write(number) };
                    let (first, second) = (own.clone(), page.clone());
                    drop(own);
                    sender.send((number, first)).unwrap();
                    sender.send((5, second)).unwrap();
                }
            });
        }
        drop(sender);
        drop(page);
        for (number, page) in receiver {
            assert_eq!(page.tag(), u64::from(number));
            // SAFETY: it was written before it was sent, and isn't written again.
            assert_eq!(unsafe { page.bytes().as_ptr().read() }, number);
        }
    });
}

#[test]
fn after_a_huge_page_that_took_long_the_next_attempt_is_far() {
    let mut pool = Pool::new();
    pool.chunks = SMALL - 1;
    assert!(!pool.wants_huge());
    pool.chunks = SMALL;
    let mut attempts = Vec::new();
    for chunk in 0..300 {
        if pool.wants_huge() {
            attempts.push(chunk);
            pool.learn(false);
        }
    }
    assert_eq!(attempts, [0, 16, 48, 112, 240]);
    let wanted = |pool: &mut Pool| (0..1000).find(|_| pool.wants_huge()).is_some();
    assert!(wanted(&mut pool));
    pool.learn(true);
    assert!(pool.wants_huge());
    pool.learn(true);
    assert!(pool.wants_huge());
}

/// Forks, to the given depth: each child allocates pages, and frees some of its parent's. Returns true if that
/// succeeded in all of them.
#[cfg(all(unix, not(miri)))]
fn fork_down(depth: u32, inherited: PageRef) -> bool {
    // SAFETY: the child has memory, takes pages, forks, and ends: the test is about that.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a child that would wait for ever is ended.
        unsafe { libc::alarm(20) };
        drop(inherited);
        let page = PageRef::take(1).page;
        fill(&page, 7);
        let is_own = page.chunk().head().process == Origin::here().process();
        let pool = lock(Origin::here().process());
        let is_alone = (pool.chunks, pool.empty) == (1, 0);
        drop(pool);
        let went_well = is_own && is_alone && (depth == 0 || fork_down(depth - 1, page));
        // SAFETY: ends the process, and nothing else.
        unsafe { libc::_exit(i32::from(!went_well)) }
    }
    let mut status = 0;
    // SAFETY: the system writes to `status`, which is borrowed for that.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    child > 0 && waited == child && status == 0
}

#[test]
#[cfg(all(unix, not(miri)))]
#[allow(clippy::disallowed_methods, reason = "forks concern whole processes")]
fn forked_children_have_a_pool_of_their_own() {
    const SCENE: &str = "ANNALS_TEST_ARENA";
    if std::env::var_os(SCENE).is_none() {
        // In a process that has opened no file.
        let mut process = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "arena::tests::forked_children_have_a_pool_of_their_own";
        let ended = process.args(["--exact", name]).env(SCENE, "").output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
        return;
    }
    let page = PageRef::take(1).page;
    // As another thread may have it at any time.
    let locked = lock(Origin::here().process());
    let went_well = fork_down(10, page.clone());
    drop(locked);
    assert!(went_well);
    assert_eq!(page.tag(), 1);
}
