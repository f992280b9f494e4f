"use strict";
// From the JSON of `cutrace analyze --by line` and `cutrace advise` to what an editor draws. Nothing
// here knows an editor: lines are counted from 1, as in the JSON.

const COUNTERS = [
  "global_bytes_transferred", "global_transactions", "global_ideal_transactions",
  "shared_wavefronts", "shared_conflicts", "instructions",
];
const MEASURES = [
  ["global_bytes_transferred", "bytes moved"],
  ["shared_wavefronts", "shared memory passes"],
  ["instructions", "instructions"],
];
const SHOWN = 0.02; // the part of it from which on a line is told of
const STEPS = 5;

/** Whether a place of the JSON is in the file of this path: its whole name, or the end of the path. */
function isOf(file, path) {
  const [own, named] = [path, file].map((text) => text.replaceAll("\\", "/"));
  return own === named || own.endsWith(`/${named.replace(/^(\.\/)+/, "")}`);
}

/** The counters of each line of a file, all launches together: a map of line to counts. */
function linesOf(profile, path) {
  const lines = new Map();
  for (const launch of profile.launches) {
    for (const row of launch.counters) {
      if (!row.line || row.vocabulary !== "cutrace" || !isOf(row.file, path)) continue;
      const counts = lines.get(row.line) ?? {};
      const value = Object.values(row.values)[0] ?? 0;
      counts[row.counter] = (counts[row.counter] ?? 0) + value;
      lines.set(row.line, counts);
    }
  }
  return lines;
}

/** What lines are judged by, the first that counted anything: its counter, its words, its sum. */
function measureOf(lines) {
  for (const [counter, words] of MEASURES) {
    const total = [...lines.values()].reduce((sum, counts) => sum + (counts[counter] ?? 0), 0);
    if (total) return { counter, words, total };
  }
  return null;
}

/** The lines that cost: their part, how hot they are from 1 to STEPS, and a sentence. */
function costs(profile, path) {
  const lines = linesOf(profile, path);
  const measure = measureOf(lines);
  if (!measure) return [];
  return [...lines]
    .map(([line, counts]) => ({ line, counts, part: (counts[measure.counter] ?? 0) / measure.total }))
    .filter(({ part, counts }) => part >= SHOWN || counts.shared_conflicts)
    .sort((a, b) => a.line - b.line)
    .map(({ line, counts, part }) => ({
      line, part, step: Math.max(1, Math.ceil(part * STEPS)), text: sentence(counts, part, measure.words),
    }));
}

function sentence(counts, part, words) {
  const told = [`${Math.round(100 * part)} % of the ${words}`];
  const count = (name) => (counts[name] ?? 0).toLocaleString("en-US");
  if (counts.global_transactions > counts.global_ideal_transactions) {
    told.push(`${count("global_transactions")} transactions, ${count("global_ideal_transactions")} needed`);
  }
  if (counts.shared_conflicts) told.push(`${count("shared_conflicts")} bank conflicts`);
  return told.join("; ");
}

/** The findings about a file: line, rule and message. */
function problems(advice, path) {
  return advice.launches.flatMap(({ findings }) => findings).flatMap((finding) => {
    const [, file, line] = /^(.*):(\d+)$/.exec(finding.place) ?? [];
    if (!file || !isOf(file, path)) return [];
    const tried = finding.tried ? ` (tried: ${finding.tried})` : "";
    return [{ line: Number(line), rule: finding.rule, message: `${finding.what}: ${finding.change}${tried}` }];
  });
}

module.exports = { COUNTERS, STEPS, costs, isOf, problems };
