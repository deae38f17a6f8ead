// Says on the body whether what the link asks for is shown: for tests, and for whoever scripts the page.

/** The parts that are being fetched. */
export const waiting = new Set();

/** Says that a part of the page is being fetched. */
export function begin(part) {
  waiting.add(part);
  document.body.dataset.ready = '0';
}

/** Says that a part is shown, or isn't wanted any more; the page is ready after the last one was drawn. */
export function end(part) {
  waiting.delete(part);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    if (waiting.size > 0) return;
    document.body.dataset.ready = '1';
    document.body.dataset.after ??= Math.round(performance.now());
  }));
}

/** Runs what a view asks for, as the effect of a component: what was asked before is cancelled. */
export function asking(part, ask, fail) {
  const wait = new AbortController();
  begin(part);
  ask(wait.signal)
    .catch((error) => error.name === 'AbortError' || fail(error))
    .finally(() => wait.signal.aborted || end(part));
  return () => {
    wait.abort();
    end(part);
  };
}
