"use strict";
// Runs cutrace on the file that is open and draws its JSON: heat behind lines and in the ruler, a
// sentence above each line that costs, advice among the problems. What to draw is in draw.js.

const { execFile } = require("node:child_process");
const { dirname } = require("node:path");
const vscode = require("vscode");
const { COUNTERS, STEPS, costs, problems } = require("./draw");

const drawn = new Map(); // path of a file: the lines that cost
let heats, found, changed, state;

function activate(context) {
  heats = Array.from({ length: STEPS }, (_, step) => {
    const color = `rgba(214, 96, 20, ${(0.08 * (step + 1)).toFixed(2)})`;
    return vscode.window.createTextEditorDecorationType({
      isWholeLine: true, backgroundColor: color, overviewRulerColor: color,
      overviewRulerLane: vscode.OverviewRulerLane.Left,
    });
  });
  found = vscode.languages.createDiagnosticCollection("cutrace");
  changed = new vscode.EventEmitter();
  state = vscode.window.createStatusBarItem(vscode.StatusBarAlignment.Left);
  const lenses = { onDidChangeCodeLenses: changed.event, provideCodeLenses };
  context.subscriptions.push(
    ...heats, found, changed, state,
    vscode.languages.registerCodeLensProvider({ scheme: "file" }, lenses),
    vscode.commands.registerCommand("cutrace.count", () => count(vscode.window.activeTextEditor)),
    vscode.commands.registerCommand("cutrace.clear", clear),
    vscode.commands.registerCommand("cutrace.why", why),
    vscode.window.onDidChangeActiveTextEditor((editor) => editor && paint(editor)),
    vscode.workspace.onDidSaveTextDocument((document) => {
      const editor = vscode.window.visibleTextEditors.find((each) => each.document === document);
      if (editor && settings().get("onSave") && drawn.has(document.fileName)) return count(editor);
    }),
  );
}

const settings = () => vscode.workspace.getConfiguration("cutrace");

/** The JSON of a verb about a file. */
function ask(path, verb, ...options) {
  const words = [verb, settings().get("trace") || path, "-d", settings().get("device"), ...options];
  return new Promise((resolve, reject) => {
    const limits = { cwd: dirname(path), maxBuffer: 1 << 28 };
    execFile(settings().get("command"), [...words, "--format", "json"], limits, (error, said, why) => {
      try {
        if (error) throw new Error(why.trim() || error.message);
        resolve(JSON.parse(said));
      } catch (problem) {
        reject(problem);
      }
    });
  });
}

async function count(editor) {
  if (!editor) return;
  const path = editor.document.fileName;
  state.text = "$(sync~spin) cutrace";
  state.show();
  try {
    const options = ["--by", "line", "--counters", COUNTERS.join(",")];
    const [profile, advice] = [await ask(path, "analyze", ...options), await ask(path, "advise")];
    drawn.set(path, costs(profile, path));
    found.set(editor.document.uri, problems(advice, path).map((each) => diagnostic(editor.document, each)));
    paint(editor);
    state.hide();
  } catch (problem) {
    state.text = "$(error) cutrace";
    vscode.window.showErrorMessage(problem.message);
  }
}

const lineOf = (document, line) => document.lineAt(Math.min(line, document.lineCount) - 1).range;

function diagnostic(document, { line, rule, message }) {
  const severity = vscode.DiagnosticSeverity.Information;
  const made = new vscode.Diagnostic(lineOf(document, line), message, severity);
  return Object.assign(made, { source: "cutrace", code: rule });
}

function paint(editor) {
  const lines = drawn.get(editor.document.fileName) ?? [];
  heats.forEach((heat, step) => {
    const mine = lines.filter((each) => each.step === step + 1);
    editor.setDecorations(heat, mine.map(({ line }) => lineOf(editor.document, line)));
  });
  changed.fire();
}

function provideCodeLenses(document) {
  return (drawn.get(document.fileName) ?? []).map(({ line, text }) => {
    const command = { title: text, command: "cutrace.why", arguments: [document.fileName, line] };
    return new vscode.CodeLens(lineOf(document, line), command);
  });
}

/** The lanes of a line, in a terminal. */
function why(path, line) {
  const shell = settings().get("command");
  const words = ["why", settings().get("trace") || path, `${path}:${line}`];
  const terminal = vscode.window.createTerminal({
    name: `cutrace ${line}`, shellPath: shell, shellArgs: [...words, "-d", settings().get("device")],
    cwd: dirname(path),
  });
  terminal.show();
}

function clear() {
  drawn.clear();
  found.clear();
  vscode.window.visibleTextEditors.forEach(paint);
}

module.exports = { activate };
