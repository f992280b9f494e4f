"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const launch = document.getElementById("launch");
  const device = document.getElementById("device");
  const find = document.getElementById("find");
  const panels = all("[data-panel]");
  const tabs = all("[data-tab]");

  // An address holds all that was chosen: #source;launch=v0-3;device=h100;by=excess;find=scale
  function read() {
    const [name, ...rest] = decodeURIComponent(location.hash.slice(1)).split(";");
    return [name, Object.fromEntries(rest.map((text) => text.split(/=(.*)/s, 2)))];
  }
  function tell() {
    const words = [current()];
    if (launch.options.length > 1) words.push(`launch=${launch.value}`);
    if (device.options.length > 1) words.push(`device=${device.value}`);
    const heat = all(".measures input:checked").find((input) => !input.closest(".off"));
    if (heat && !heat.defaultChecked) words.push(`by=${heat.value}`);
    if (find && find.value) words.push(`find=${encodeURIComponent(find.value)}`);
    history.replaceState(null, "", `#${words.join(";")}`);
  }
  function current() {
    return (panels.find((panel) => panel.classList.contains("now")) || panels[0]).dataset.panel;
  }
  function show(name) {
    for (const panel of panels) panel.classList.toggle("now", panel.dataset.panel === name);
    for (const tab of tabs) {
      if (tab.dataset.tab === name) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
  }
  function choose() {
    for (const part of all("[data-launch], [data-device]")) {
      const { launch: ofLaunch = launch.value, device: ofDevice = device.value } = part.dataset;
      part.classList.toggle("off", ofLaunch !== launch.value || ofDevice !== device.value);
    }
  }
  function pick(select, value) {
    if ([...select.options].some((option) => option.value === value)) select.value = value;
  }
  function follow() {
    const [name, chosen] = read();
    const found = document.getElementById(name);
    const panel = found && found.closest("[data-panel]");
    show(panel ? panel.dataset.panel : document.querySelector("[data-tab]").dataset.tab);
    pick(launch, chosen.launch);
    pick(device, chosen.device);
    if (find && "find" in chosen) find.value = chosen.find;
    if (chosen.by) for (const input of all(`.measures input[value="${CSS.escape(chosen.by)}"]`)) shade(input);
    const part = found && found.closest("[data-launch]");
    if (part) {
      launch.value = part.dataset.launch;
      if (part.dataset.device) device.value = part.dataset.device;
    }
    choose();
    sift();
    if (!panel || found === panel) {
      scrollTo(0, 0);
      return;
    }
    const folded = found.closest(".far");
    if (folded) unfold(folded, true);
    found.scrollIntoView({ block: found.matches("tr") ? "center" : "start" });
  }
  function shade(input) {
    input.checked = true;
    for (const table of all("table.source", input.closest("article"))) table.className = table.className.replace(/by-\w+/, `by-${input.value}`);
  }
  function sift() {
    if (!find) return;
    const words = find.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const row of all("table.launches tbody tr")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    document.getElementById("found").textContent = find.value ? `${shown} found` : "";
  }
  function unfold(lines, open) {
    lines.classList.toggle("closed", !open);
    const button = lines.previousElementSibling.querySelector("button");
    if (button) button.setAttribute("aria-expanded", String(open));
  }
  function value(row, column) {
    const cell = row.cells[column];
    const data = cell.querySelector("data");
    const text = data ? data.value : cell.textContent.trim();
    return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  }
  function sort(head) {
    const table = head.closest("table");
    const column = head.cellIndex;
    const falls = head.getAttribute("aria-sort") === "descending";
    const sign = falls ? 1 : -1;
    for (const other of all("th[aria-sort]", table)) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falls ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [value(row, column), row]);
    rows.sort(([a], [b]) => sign * (typeof a === "number" && typeof b === "number" ? a - b
      : (typeof a === "number") - (typeof b === "number") || String(a).localeCompare(String(b))));
    body.append(...rows.map(([, row]) => row));
  }

  root.classList.replace("plain", "tabbed");
  for (const part of all(".script[hidden]")) part.hidden = false;
  const one = all(".choose label[hidden]");
  if (one.length === 2) document.querySelector(".choose").hidden = true;
  for (const select of [launch, device]) select.addEventListener("change", () => { choose(); tell(); });
  if (find) find.addEventListener("input", () => { sift(); tell(); });
  for (const link of all("[data-open]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      launch.value = link.dataset.open;
      choose();
      tell();
      scrollTo(0, 0);
    });
  }
  for (const tab of tabs) {
    tab.addEventListener("click", (event) => {
      event.preventDefault();
      history.pushState(null, "", `#${tab.dataset.tab}`);
      show(tab.dataset.tab);
      tell();
      scrollTo(0, 0);
    });
  }
  for (const heat of all(".measures input")) heat.addEventListener("change", () => { shade(heat); tell(); });
  for (const box of all("[data-ptx]")) {
    box.addEventListener("change", () => {
      for (const table of all("table.source", box.closest("article"))) table.classList.toggle("with-ptx", box.checked);
    });
  }
  for (const head of all("table.sorted thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(head));
  }
  for (const lines of all("tbody.far")) {
    const cell = lines.previousElementSibling.querySelector("td");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...cell.childNodes);
    cell.append(button);
    button.addEventListener("click", () => unfold(lines, lines.classList.contains("closed")));
    unfold(lines, false);
  }
  for (const button of all("[data-unfold]")) {
    button.addEventListener("click", () => {
      for (const lines of all("tbody.far", button.closest("article"))) unfold(lines, true);
    });
  }
  addEventListener("keydown", (event) => {
    if (!event.altKey || event.ctrlKey || event.metaKey) return;
    const step = (select, by) => {
      select.selectedIndex = (select.selectedIndex + by + select.options.length) % select.options.length;
      choose();
      tell();
    };
    const digit = /^Digit([1-9])$/.exec(event.code);
    if (digit && tabs[digit[1] - 1]) tabs[digit[1] - 1].click();
    else if (event.code === "KeyN") step(launch, event.shiftKey ? -1 : 1);
    else if (event.code === "KeyM") step(device, event.shiftKey ? -1 : 1);
    else if (event.code === "KeyL" && find) { tabs[0].click(); find.focus(); }
    else return;
    event.preventDefault();
  });
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  addEventListener("load", follow);
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  follow();
})();
