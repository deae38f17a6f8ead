"""A program that mypy checks strictly."""

import annals


def names(db: annals.Database) -> list[str]:
    with db.write(comment="typed") as tx:
        lille: int = tx.city.insert(name="Lille")
        tx.city.update(lille, name="Lyon")
    found: list[str] = [row.name for row in db.read().city]
    for version in db.history("city", lille):
        if version.new is not None and version.kind == "update":
            found.append(version.new["name"])
    return found


def refused(error: annals.Error) -> bool:
    return error.kind == "unique"
