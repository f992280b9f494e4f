"use strict";
const assert = require("node:assert");
const test = require("node:test");
const { costs, isOf, problems } = require("../draw");

const counter = (line, name, value, file = "k.cu") =>
  ({ file, line, text: "", vocabulary: "cutrace", counter: name, unit: "", values: { h100: value } });
const profile = (...counters) => ({ launches: [{ counters }] });

test("lines are judged by the bytes that they move", () => {
  const told = costs(profile(
    counter(7, "global_bytes_transferred", 900), counter(7, "global_transactions", 2048),
    counter(7, "global_ideal_transactions", 256), counter(9, "global_bytes_transferred", 100),
    counter(3, "global_bytes_transferred", 0),
  ), "/home/me/k.cu");
  assert.deepStrictEqual(told.map(({ line, part, step }) => [line, part, step]), [[7, 0.9, 5], [9, 0.1, 1]]);
  assert.strictEqual(told[0].text, "90 % of the bytes moved; 2,048 transactions, 256 needed");
  assert.strictEqual(told[1].text, "10 % of the bytes moved");
});

test("launches add up, and without traffic instructions count", () => {
  const two = { launches: [{ counters: [counter(1, "instructions", 30)] }, { counters: [counter(2, "instructions", 10)] }] };
  assert.deepStrictEqual(costs(two, "k.cu").map(({ line, part }) => [line, part]), [[1, 0.75], [2, 0.25]]);
  assert.deepStrictEqual(costs(profile(), "k.cu"), []);
});

test("lines of other files are not drawn here", () => {
  assert.deepStrictEqual(costs(profile(counter(1, "instructions", 5, "other.cu")), "/a/k.cu"), []);
  assert.ok(isOf("./src/k.cu", "/home/me/src/k.cu"));
  assert.ok(isOf("src\\k.cu", "C:\\me\\src\\k.cu"));
  assert.ok(!isOf("k.cu", "/home/me/bank.cu"));
});

test("advice is a problem at its line", () => {
  const finding = { rule: "bank_conflicts", place: "k.cu:12", what: "lanes meet", change: "pad", tried: "--pad t=1" };
  const advice = { launches: [{ findings: [finding, { ...finding, place: "h.cu:3" }, { ...finding, place: "" }] }] };
  assert.deepStrictEqual(problems(advice, "/a/k.cu"), [
    { line: 12, rule: "bank_conflicts", message: "lanes meet: pad (tried: --pad t=1)" },
  ]);
});
