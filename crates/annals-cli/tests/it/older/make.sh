#!/usr/bin/env bash
# Makes the files of the folder beside it, and what they answer, with the program at $1. They were made with that of
# a0300d08, once: later programs must open them, and answer alike.
set -euo pipefail
annals=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$here/files" && mkdir "$here/files" && cd "$here/files"

# Tables of all kinds, an image with key frames, kept segments, blobs, an erased row.
$annals shell all.annals > /dev/null << 'END'
create_table town
add_field town name string
add_field town code int32
add_field town founded timestamp null
add_field town plan blob null
create_unique_index town_by_name town name
create_index town_by_code town code
create_table person
add_field person name string
add_field person home references town
add_field person height float64 null
add_field person is_guest bool
create_index person_by_home person home
write_blob "a plan of Lille"
insert town "Lille" 59000 2001-02-03T04:05:06Z blob:1
insert town "Tokyo" 100 null null
insert person "Ada" 0 1.75 true
insert person "Zoé" 1 null false
comment "the first ones"
commit
END
for round in 1 2 3 4 5; do
    {
        for n in $(seq 1 60); do
            echo "insert town \"town $round/$n\" $((round * 1000 + n)) null null"
            echo "insert person \"person $round/$n\" $((n % 2)) $n.25 true"
            echo "update person 0 height $round.$n"
            echo "comment \"round $round, $n\""
            echo commit
        done
        echo "delete_from person 1$round"
        echo commit
    } | $annals shell all.annals > /dev/null
    $annals backfill all.annals > /dev/null
    case $round in 2 | 4) $annals backfill all.annals --mode restart > /dev/null ;; esac
done
$annals erase all.annals person 20 --yes > /dev/null
printf 'update person 3 name "after the erasure"\ncommit\n' | $annals shell all.annals > /dev/null
$annals backfill all.annals > /dev/null

# An archive of it, a compressed file, one whose history was forgotten.
$annals archive all.annals "file://$PWD/archive" > /dev/null
$annals backup all.annals forgotten.annals > /dev/null
$annals backfill forgotten.annals --mode truncate --forget-history > /dev/null
$annals convert --compress forgotten.annals compressed.annals > /dev/null

# One whose program was killed with changes that weren't committed.
mkfifo pipe
$annals shell killed.annals < pipe > /dev/null &
exec 3> pipe
printf 'create_table t\nadd_field t n int64\ninsert t 1\ncommit\ninsert t 2\ncommit\n' >&3
printf 'insert t 3\n' >&3
sleep 2
kill -9 $! && wait $! 2> /dev/null || true
exec 3>&-
rm pipe

# A replica with changes that were made offline, on top of two transactions of its server.
printf 'create_table page\nadd_field page title string\ninsert page "first"\ncommit\n' | $annals shell server.annals > /dev/null
$annals serve server.annals --listen 127.0.0.1:0 --no-token > served.txt 2>&1 &
sleep 2
url=$(grep -o 'http://[^ ]*' served.txt | head -1)
url=${url%/}; url=${url%/v1*}/v1/server
printf 'insert page "one"\ncommit\n' | $annals shell replica.annals --replica-of "$url" > /dev/null
kill $! && wait $! 2> /dev/null || true
printf 'insert page "two"\ncomment "on the train"\ncommit\nupdate page 0 title "changed"\ncommit\n' | $annals shell replica.annals --replica-of "$url" --offline > /dev/null
rm -f served.txt ./*.lock

while read -r line; do
    echo "\$ $line"
    eval "$annals $line" 2>&1 || echo "[status $?]"
done < ../questions.txt > ../answers.txt
rm -rf restored.annals* server.annals-tokens
