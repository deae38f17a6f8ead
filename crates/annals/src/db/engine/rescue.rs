//! The handling of a lost page in a view: the database rebuilds its state, and the view continues in that.

use annals_schema::Txid;
use std::sync::Arc;

use crate::db::engine::core::{Core, Rescuer};
use crate::db::engine::rebuild;
use crate::db::engine::rescued::{Making, too_late};
use crate::storage::{Clock, SystemClock};
use crate::store::{Rescue, Shown, View};
use crate::{Error, ErrorKind, Result};

impl Rescue for Rescuer {
    fn rebuilt(&self, lost: &View, shown: Shown) -> Result<Arc<View>> {
        match self.core() {
            Some(core) => rebuilt_view(&core, lost, shown),
            None => Err(Error::new(
                ErrorKind::PageLost,
                "a page of the image is damaged, and the database of this snapshot was closed: open it again; \
                 nothing is lost",
            )),
        }
    }
}

/// Returns a view of the same state as one that lies over lost pages.
fn rebuilt_view(core: &Core, lost: &View, shown: Shown) -> Result<Arc<View>> {
    let deadline = SystemClock.elapsed().saturating_add(core.rebuild_timeout);
    rebuild::start_rebuild(core);
    let is_over = rebuild::wait_for_rebuild(core, deadline);
    let published = core.group.published();
    if !is_over {
        return Err(too_late(&published));
    }
    let is_it = published.point.txid == Txid(shown.txid) && !shown.is_adapted;
    if is_it && published.view.root() != lost.root() {
        return Ok(Arc::clone(&published.view));
    }
    let Some(image_state) = core.image() else { return Err(too_late(&published)) };
    let (clock, budget) = (&**core.clock(), image_state.budget());
    let making = Making { published, clock, budget, damage: image_state.damage(), deadline };
    let view = core.rescued.get(lost, shown, making)?;
    view.rescued_by(&core.rescue(), shown);
    Ok(view)
}
