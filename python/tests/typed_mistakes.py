"""Mistakes that a checker finds in a program with the module of `library.schema`; each says a part of the message."""

import library

with library.open("library.annals", soft=True) as db:
    with db.write(comment="mistakes") as tx:
        lille: int = tx.town.insert(name="Lille", height=28)
        tx.town.insert(name=5)  # error: incompatible type "int"; expected "str"
        tx.town.insert()  # error: Missing named argument "name"
        tx.town.insert(name="Lyon", naem="Lyon")  # error: Unexpected keyword argument "naem"
        tx.town.insert(height=None, name=None)  # error: "name" to "insert" of "TownWritable" has incompatible type "None"
        tx.road_sign.insert(colour="blue", class_=1, town=lille)  # error: expected "Literal['red', 'green']"
        tx.road_sign.update(0, colour="blue")  # error: expected "Literal['red', 'green']"
        tx.road_sign.update("0", height=1)  # error: Argument 1 to "update"
        tx.road_sign.upsert("by_name", colour="red", class_=1, town=lille)  # error: expected "Literal['id']"
        tx.town.insert_all([{"name": "Lyon"}, {"nam": "Lille"}])  # error: Missing key "name"
        tx.twon.insert(name="Lyon")  # error: "Transaction" has no attribute "twon"
        tx["twon"]  # error: No overload variant of "__getitem__"
        tx.town[lille].nam  # error: "Town" has no attribute "nam"
    now = db.read()
    now.town[0].nam  # error: "Town" has no attribute "nam"
    now.town[0]["nam"]  # error: Invalid index type "Literal['nam']"
    now.town[0].name = "Lyon"  # error: Property "name" defined in "Town" is read-only
    now.town[0].height + 1  # error: Unsupported operand types for + ("None" and "int")
    now.town.by_name[5]  # error: Invalid index type "int"
    now.town.by_name.get("Lille").name  # error: Item "None" of "Town | None" has no attribute "name"
    now.town.index("by_nam")  # error: expected "Literal['by_name', 'town_by_name']"
    now.town.index("by_name").get("Lille").name  # error: Item "None" of "Town | None" has no attribute "name"
    now.town.by_nam  # error: "TownTable" has no attribute "by_nam"
    now.town.insert(name="Lyon")  # error: "TownTable" has no attribute "insert"
    [sign.colour == "blue" for sign in db.road_sign]  # error: Non-overlapping equality check
    db.at("comment:mistakes").twon  # error: "Snapshot" has no attribute "twon"
    db.history("twon", 0)  # error: expected "Literal['town', 'road_sign']"
    db.write(coment="mistakes")  # error: Unexpected keyword argument "coment"
library.open("library.annals", sotf=True)  # error: Unexpected keyword argument "sotf"
