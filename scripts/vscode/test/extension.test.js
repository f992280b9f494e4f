"use strict";
// The extension beside an editor that is made of paper, and a cutrace that prints what it is told.
const assert = require("node:assert");
const { chmodSync, mkdtempSync, writeFileSync } = require("node:fs");
const Module = require("node:module");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const test = require("node:test");

const folder = mkdtempSync(join(tmpdir(), "cutrace-"));
const program = join(folder, "cutrace");
const counters = [{ file: "k.cu", line: 2, vocabulary: "cutrace", counter: "global_bytes_transferred", values: { h100: 64 } }];
const finding = { rule: "uncoalesced", place: "k.cu:2", what: "apart", change: "together", tried: "" };
writeFileSync(program, `#!/usr/bin/env node
const advice = process.argv[2] === "advise";
if (process.argv[3].endsWith("bad.cu")) { console.error("bad.cu:1: no such thing"); process.exit(2); }
console.log(JSON.stringify({ launches: [advice ? { findings: [${JSON.stringify(finding)}] }
  : { counters: ${JSON.stringify(counters)} }] }));
`);
chmodSync(program, 0o755);

const commands = {}, said = [], problems = new Map();
let lenses;
const item = { show() {}, hide() {} };
const vscode = {
  window: {
    createTextEditorDecorationType: (style) => style, createStatusBarItem: () => item,
    onDidChangeActiveTextEditor() {}, showErrorMessage: (text) => said.push(text),
    visibleTextEditors: [],
  },
  languages: {
    createDiagnosticCollection: () => problems,
    registerCodeLensProvider: (_, provider) => { lenses = provider; },
  },
  commands: { registerCommand: (name, run) => { commands[name] = run; } },
  workspace: {
    onDidSaveTextDocument() {},
    getConfiguration: () => ({ get: (name) => ({ command: program, device: "h100" })[name] }),
  },
  EventEmitter: class { fire() {} }, CodeLens: class { constructor(range, command) { Object.assign(this, { range, command }); } },
  Diagnostic: class { constructor(range, message) { Object.assign(this, { range, message }); } },
  OverviewRulerLane: {}, StatusBarAlignment: {}, DiagnosticSeverity: {},
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
require("../extension").activate({ subscriptions: [] });

function open(name) {
  const painted = [];
  const document = { fileName: join(folder, name), uri: name, lineCount: 3, lineAt: (at) => ({ range: at }) };
  vscode.window.activeTextEditor = { document, setDecorations: (_, ranges) => painted.push(ranges) };
  return { document, painted };
}

test("counting a file draws heat, sentences and problems", async () => {
  const { document, painted } = open("k.cu");
  await commands["cutrace.count"]();
  assert.deepStrictEqual(painted, [[], [], [], [], [1]]); // all of it: the hottest of five
  const [lens] = lenses.provideCodeLenses(document);
  assert.strictEqual(lens.command.title, "100 % of the bytes moved");
  assert.deepStrictEqual(lens.command.arguments, [document.fileName, 2]);
  const [problem] = problems.get("k.cu");
  assert.deepStrictEqual([problem.range, problem.message, problem.code], [1, "apart: together", "uncoalesced"]);
});

test("what cutrace refuses is said, and nothing is drawn", async () => {
  const { document } = open("bad.cu");
  await commands["cutrace.count"]();
  assert.deepStrictEqual(said, ["bad.cu:1: no such thing"]);
  assert.deepStrictEqual(lenses.provideCodeLenses(document), []);
});
