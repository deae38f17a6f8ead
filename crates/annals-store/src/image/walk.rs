//! Visiting all that a root reaches: the catalog, the nodes of the directory, pages and long values.
//!
//! Invariants
//! 1. A walk ends: the height falls with each step, and no unit is visited twice.
//! 2. Only nodes on the way are in memory, 11 at most, beside the catalog and a bit for each unit.
//! 3. The catalog and each node that is entered are verified; objects are the visitor's.

use super::catalog::{Array, Catalog, Kind};
use super::format::{Root, check_place};
use super::node;
use super::stored::{Source, Stored};
use super::units::{Extent, Units};
use crate::{Error, Result};

/// A visited object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// The catalog.
    Catalog,
    /// A node of the directory, of this height.
    Node(u8),
    /// A page.
    Page,
    /// A long value.
    Bytes,
    /// The list of key frames.
    Frames,
}

/// The action for a visited object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkStep {
    /// Note its units, and continue with the objects below it.
    Enter,
    /// Skip it, and all objects below it.
    Skip,
}

/// A walk.
struct Walk<'w, V> {
    source: &'w dyn Source,
    end: u64,
    units: Units,
    visit: V,
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Catalog => f.write_str("the catalog"),
            Self::Node(height) => write!(f, "a node of height {height}"),
            Self::Page => f.write_str("a page"),
            Self::Bytes => f.write_str("a long value"),
            Self::Frames => f.write_str("the list of key frames"),
        }
    }
}

/// Visits all objects of a root, each before those below it, except its key frames, which have their own roots;
/// returns the units of all entered objects.
///
/// # Errors
/// `Corrupt` if the catalog or an entered node doesn't verify or is invalid, or if two objects share a unit; `Io`;
/// errors of `visit`.
pub(crate) fn walk<V>(source: &dyn Source, root: &Root, visit: V) -> Result<Units>
where
    V: FnMut(Object, &Stored) -> Result<WalkStep>,
{
    let mut walk = Walk { source, end: root.end, units: Units::default(), visit };
    if let Some(frames) = &root.frames {
        walk.enter(Object::Frames, frames)?;
    }
    if walk.enter(Object::Catalog, &root.catalog)? {
        let catalog = read_catalog(source, root)?;
        for array in &catalog.arrays {
            walk.array(array)?;
        }
    }
    Ok(walk.units)
}

/// Visits all objects of an array, which ends before `end`, each before those below it.
///
/// # Errors
/// As [`walk`].
#[inline]
pub fn walk_array<V>(source: &dyn Source, array: &Array, end: u64, visit: V) -> Result<()>
where
    V: FnMut(Object, &Stored) -> Result<WalkStep>,
{
    Walk { source, end, units: Units::default(), visit }.array(array)
}

/// Reads and verifies a root's catalog.
///
/// # Errors
/// `Corrupt`, `Io`.
#[inline]
pub fn read_catalog(source: &dyn Source, root: &Root) -> Result<Catalog> {
    let bytes = read(source, &root.catalog)?;
    Catalog::decode(&bytes, root.end)
        .map_err(|reason| damaged(Object::Catalog, &root.catalog, reason))
}

fn read(source: &dyn Source, stored: &Stored) -> Result<Vec<u8>> {
    let len = usize::try_from(stored.len)
        .map_err(|_| Error::corrupt(format!("{} bytes don't fit in memory", stored.len)))?;
    source.holds(stored)?;
    let mut bytes = vec![0; len];
    source.read(stored, &mut bytes)?;
    Ok(bytes)
}

fn damaged(object: Object, stored: &Stored, reason: &str) -> Error {
    Error::corrupt(format!("damaged: {object} at {}: {reason}", stored.place))
}

impl<V: FnMut(Object, &Stored) -> Result<WalkStep>> Walk<'_, V> {
    fn array(&mut self, array: &Array) -> Result<()> {
        match (&array.root, array.height) {
            (None, _) => Ok(()),
            (Some(root), 0) => self.object(array.kind, root),
            (Some(root), height) => self.node(array.kind, height, root),
        }
    }

    fn object(&mut self, kind: Kind, stored: &Stored) -> Result<()> {
        let object = if kind == Kind::Pages { Object::Page } else { Object::Bytes };
        if !kind.may_have(stored.len) {
            return Err(damaged(object, stored, "it is longer than any page"));
        }
        if stored.is_packed() && kind != Kind::Pages {
            return Err(damaged(object, stored, "only pages are compressed"));
        }
        self.enter(object, stored).map(drop)
    }

    fn node(&mut self, kind: Kind, height: u8, stored: &Stored) -> Result<()> {
        let object = Object::Node(height);
        if stored.len as usize > super::format::NODE_MAX_LEN {
            return Err(damaged(object, stored, "it is longer than any node"));
        }
        if !self.enter(object, stored)? {
            return Ok(());
        }
        let bytes = read(self.source, stored)?;
        let entries = node::decode(&bytes, height, self.end)
            .map_err(|reason| damaged(object, stored, reason))?;
        drop(bytes);
        for entry in entries.iter().flatten() {
            match height {
                1 => self.object(kind, entry)?,
                _ => self.node(kind, height - 1, entry)?,
            }
        }
        Ok(())
    }

    /// Visits something; returns whether it is entered.
    fn enter(&mut self, object: Object, stored: &Stored) -> Result<bool> {
        check_place(stored, self.end).map_err(|reason| damaged(object, stored, reason))?;
        // Checked before it is visited: overlapping objects aren't read again, so that a walk is bounded.
        if !self.units.are_free(Extent::of(stored)) {
            return Err(damaged(object, stored, "it shares a unit with something else"));
        }
        let entered = (self.visit)(object, stored)? == WalkStep::Enter;
        if entered {
            self.units.take(Extent::of(stored));
        }
        Ok(entered)
    }
}
