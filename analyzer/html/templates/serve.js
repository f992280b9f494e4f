"use strict";
(() => {
  const state = document.getElementById("served-state");
  const number = Number(document.getElementById("served").dataset.number);

  async function follow() {
    let answer;
    try {
      answer = await fetch(`state?since=${number}`);
    } catch {
      state.textContent = "the server has ended; this is its last result";
      setTimeout(follow, 2000);
      return;
    }
    if (!answer.ok) state.textContent = "the server has another token now: open the address that it printed";
    else if ((await answer.json()).number !== number) location.reload();
    else setTimeout(follow, 100);
  }
  follow();
})();
