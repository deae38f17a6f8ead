// Values that were erased: nothing stands in their place, and the page says so.

/** Returns the mark of the erasure of a value that a transaction set: it is the next one of its row, or of this field of it. */
export function erasureOf(model, { table, id, key }, txid) {
  return model.activity?.marks.find(({ erased, ...mark }) => erased && mark.txid > txid
    && erased.table === table && erased.id === id && (erased.field == null || erased.field === key));
}
