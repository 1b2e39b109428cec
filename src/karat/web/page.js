"use strict";

// Labels are sent one by one; the page is then fetched again, so that all it shows is
// what the server says.
(() => {
  const message = document.getElementById("message");
  let last = null;

  const say = (text, again) => {
    message.replaceChildren(text);
    if (!again) return;
    const button = document.createElement("button");
    button.textContent = "Undo";
    button.addEventListener("click", undo);
    message.append(button);
  };
  const send = async (url, options) => {
    const answer = await fetch(url, options);
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error);
    return told;
  };
  const refresh = async (place) => {
    const answer = await fetch(location.href);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.getElementById("main").replaceWith(fresh.getElementById("main"));
    const cards = [...document.querySelectorAll(".document")];
    const card = document.getElementById(place) || cards[cards.length - 1];
    if (card) card.focus();
  };
  const attempt = async (work) => {
    try {
      await work();
    } catch (error) {
      say(`Not done: ${error.message}`, false);
    }
  };
  const label = (card, grade, next) =>
    attempt(async () => {
      const { query, document: name, text, url } = card.dataset;
      const why = card.querySelector("[name=why]").value;
      const body = { query, grade: Number.isNaN(Number(grade)) ? grade : Number(grade), why };
      if (name) body.document = name;
      else body.text = text;
      const told = await send(url, { method: "POST", body: JSON.stringify(body) });
      last = { url: `${url}/${told.labels[0]}`, place: card.id };
      await refresh(next ? next.id : card.id);
      say(told.message, true);
    });
  const undo = () =>
    attempt(async () => {
      if (!last) {
        say("Nothing to take back.", false);
        return;
      }
      const { url, place } = last;
      last = null;
      const told = await send(url, { method: "DELETE" });
      await refresh(place);
      say(`Taken back: ${told.message}`, false);
    });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-grade]");
    if (button) label(button.closest(".document"), button.dataset.grade, null);
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const cards = [...document.querySelectorAll(".document")];
    const place = cards.indexOf(event.target.closest(".document"));
    const next = cards[place + 1];
    const blind = event.target.closest(".pool");
    // Who may label comes to the first document from anywhere else on the page, too.
    const start = event.target === document.body && document.querySelector("[data-grade]");
    const able = place >= 0 && cards[place].querySelector("[data-grade]");
    if (able && /^[0-3]$/.test(event.key)) label(cards[place], event.key, blind ? null : next);
    else if (able && event.key === "?") label(cards[place], "can't tell", blind ? null : next);
    else if (event.key === "u") undo();
    else if ((place >= 0 || start) && event.key === "ArrowDown" && next) next.focus();
    else if (place > 0 && event.key === "ArrowUp") cards[place - 1].focus();
    else return;
    event.preventDefault();
  });

  // The page of what to label is worked through by keys from the start.
  const first = document.querySelector(".pool .document");
  if (first) first.focus({ preventScroll: true });
})();
