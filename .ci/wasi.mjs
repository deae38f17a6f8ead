// Runs a program of WebAssembly, as Cargo's runner for wasm32-wasip1: node .ci/wasi.mjs PROGRAM ARGUMENTS
import { readFile } from "node:fs/promises";
import { argv, env, exit } from "node:process";
import { WASI } from "node:wasi";

const wasi = new WASI({ version: "preview1", args: argv.slice(2), env, returnOnExit: true });
const program = await WebAssembly.compile(await readFile(argv[2]));
const instance = await WebAssembly.instantiate(program, wasi.getImportObject());
exit(wasi.start(instance));
