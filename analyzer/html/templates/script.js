"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const launch = document.getElementById("launch");
  const device = document.getElementById("device");
  const panels = all("[data-panel]");

  function show(name) {
    for (const panel of panels) panel.classList.toggle("now", panel.dataset.panel === name);
    for (const tab of all("[data-tab]")) {
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
  function follow() {
    const found = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const panel = found && found.closest("[data-panel]");
    show(panel ? panel.dataset.panel : "summary");
    if (!panel || found === panel) {
      scrollTo(0, 0);
      return;
    }
    const part = found.closest("[data-launch]");
    if (part) {
      launch.value = part.dataset.launch;
      if (part.dataset.device) device.value = part.dataset.device;
      choose();
    }
    found.scrollIntoView();
  }

  root.classList.replace("plain", "tabbed");
  for (const part of all(".script[hidden]")) part.hidden = false;
  const one = all(".choose label[hidden]");
  if (one.length === 2) document.querySelector(".choose").hidden = true;
  launch.addEventListener("change", choose);
  device.addEventListener("change", choose);
  for (const link of all("[data-open]")) {
    link.addEventListener("click", () => { launch.value = link.dataset.open; choose(); scrollTo(0, 0); });
  }
  for (const tab of all("[data-tab]")) {
    tab.addEventListener("click", (event) => {
      event.preventDefault();
      history.pushState(null, "", `#${tab.dataset.tab}`);
      follow();
    });
  }
  for (const heat of all(".measures input")) {
    heat.addEventListener("change", () => {
      for (const table of heat.closest("article").querySelectorAll("table.source")) table.className = `source by-${heat.value}`;
    });
  }
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  addEventListener("load", follow);
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  choose();
  follow();
})();
