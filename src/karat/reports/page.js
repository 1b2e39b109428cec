"use strict";
// The table of queries, the drawer that shows one, and labels given in it.
// Whatever came from files is shown as text: nothing here reads it as markup.
(() => {
  const source = document.getElementById("data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const packed = [...document.querySelectorAll("script.block")];
  const byId = (id) => document.getElementById(id);
  const several = data.systems.length > 1;
  // Without gold there is nothing to score; who labels blind sees no run and no rank.
  const scored = data.metrics.length > 0;
  const blind = Boolean(data.blind);
  const PAGE = 100;
  const GRADES = [0, 1, 2, 3];
  const UNDECIDED = "can't tell";
  const LONG = 700;
  const VERDICTS = {
    support: "supported by",
    contradict: "contradicted by",
    partial: "stated in part by",
    none: "not supported",
    failed: "no verdict",
  };

  const make = (name, attributes, ...inside) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
      else if (value === true) element.setAttribute(key, "");
      else if (value !== false && value !== null) element.setAttribute(key, value);
    }
    element.append(...inside.filter((part) => part !== null));
    return element;
  };
  const button = (text, act, attributes) => make("button", { type: "button", on: { click: act }, ...attributes }, text);
  const exact = (text, name = "bdi") => make(name, { class: "exact" }, text);
  const shown = (score) => (score === null ? "–" : score.toFixed(4));

  // The table ---------------------------------------------------------------
  const state = { sort: "", down: false, page: 0, rows: data.queries.map((_, n) => n) };
  const metric = () => Number(byId("metric").value || 0);
  const change = (row, m) => {
    const scores = data.scores.map((system) => system[m][row]);
    const [first, last] = [scores[0], scores[scores.length - 1]];
    return first === null || last === null ? null : last - first;
  };
  const columns = () => {
    const found = [
      { key: "query", name: "query", value: (row) => data.queries[row], text: true },
      { key: "question", name: "question", value: (row) => data.questions[row], text: true },
    ];
    if (!data.questions.some(Boolean)) found.pop();
    if (data.tags.length) {
      found.push({ key: "tags", name: "tags", value: (row) => data.tagged[row].map((n) => data.tags[n]).join(", "), text: true });
    }
    if (data.alike) found.push({ key: "alike", name: "rbo", value: (row) => data.alike[row], score: true });
    if (!scored) return found;
    data.systems.forEach((system, s) => {
      const metrics = several ? [metric()] : data.metrics.map((_, m) => m);
      for (const m of metrics) {
        const name = several ? system : data.metrics[m];
        found.push({ key: `score ${s} ${m}`, name, value: (row) => data.scores[s][m][row], score: true });
      }
      found.push({ key: `first ${s}`, name: "first rank", value: (row) => data.first[s][row] || null });
    });
    if (several) found.push({ key: "change", name: "change", value: (row) => change(row, metric()), signed: true });
    return found;
  };
  const trouble = (row) => data.status.map((told) => told[row]).filter(Boolean);

  const select = () => {
    const wanted = byId("search").value.trim().toLowerCase();
    const tag = byId("tag").value;
    const only = byId("only").value;
    const m = several ? metric() : 0;
    const scores = (row) => data.scores.map((system) => (system[m] ? system[m][row] : null));
    const keep = {
      "": () => true,
      zero: (row) => data.first.some((first) => !first[row]),
      part: (row) => scores(row).some((score) => score !== null && score < 1),
      differ: (row) => new Set(scores(row)).size > 1,
      trouble: (row) => trouble(row).length > 0 || scores(row).includes(null),
    }[only];
    state.rows = data.queries
      .map((_, row) => row)
      .filter(
        (row) =>
          keep(row) &&
          (!tag || data.tagged[row].includes(Number(tag))) &&
          (!wanted ||
            data.queries[row].toLowerCase().includes(wanted) ||
            data.questions[row].toLowerCase().includes(wanted)),
      );
    const column = columns().find((one) => one.key === state.sort);
    if (column) {
      const sign = state.down ? -1 : 1;
      const order = new Intl.Collator(undefined, { numeric: true }).compare;
      const values = new Map(state.rows.map((row) => [row, column.value(row)]));
      state.rows.sort((a, b) => {
        const [x, y] = [values.get(a), values.get(b)];
        if (x === null || y === null) return (x === null) - (y === null) || a - b;
        return sign * (column.text ? order(x, y) : x - y) || a - b;
      });
    }
    state.page = 0;
    draw();
  };

  const draw = () => {
    const all = columns();
    const heads = all.map((column) => {
      const active = column.key === state.sort;
      const arrow = active ? (state.down ? " ↓" : " ↑") : "";
      const sort = () => {
        state.down = active ? !state.down : false;
        state.sort = column.key;
        select();
      };
      const direction = state.down ? "descending" : "ascending";
      return make(
        "th",
        { scope: "col", class: column.text ? `text ${column.key}` : "number", "aria-sort": active ? direction : "none" },
        button(column.name + arrow, sort, { class: "sort" }),
      );
    });
    byId("table").tHead.replaceChildren(make("tr", {}, ...heads));
    const from = state.page * PAGE;
    const rows = state.rows.slice(from, from + PAGE).map((row) => {
      const cells = all.map((column) => {
        const value = column.value(row);
        if (column.key === "query") {
          const open = button(exact(value), () => show(row), { class: "open" });
          return make("th", { scope: "row", class: "text" }, open);
        }
        if (column.text) return make("td", { class: `text ${column.key}`, dir: "auto" }, value);
        const text = value === null ? "–" : column.score ? shown(value) : column.signed ? signed(value) : String(value);
        const cell = make("td", { class: "number" }, text);
        if (column.score && value !== null && value >= 0 && value <= 1) {
          cell.classList.add("share");
          cell.style.setProperty("--share", `${value * 100}%`);
        }
        if (column.signed && value) cell.classList.add(value > 0 ? "good" : "bad");
        return cell;
      });
      const line = make("tr", { on: { click: (event) => event.target.closest("button") || show(row) } }, ...cells);
      if (trouble(row).length) line.title = trouble(row).join("; ");
      return line;
    });
    byId("table").tBodies[0].replaceChildren(...rows);
    const last = Math.min(from + PAGE, state.rows.length);
    byId("where").textContent = state.rows.length ? `${from + 1} to ${last} of ${state.rows.length}` : "no query";
    byId("back").disabled = from === 0;
    byId("forth").disabled = last >= state.rows.length;
  };
  const signed = (value) => (value > 0 ? "+" : "") + value.toFixed(4);

  // The texts -----------------------------------------------------------------
  const blocks = new Map();
  const unpack = async (number) => {
    if (!blocks.has(number)) {
      const bytes = Uint8Array.from(atob(packed[number].textContent), (mark) => mark.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      blocks.set(number, new Response(stream).json());
    }
    return blocks.get(number);
  };

  // The drawer ------------------------------------------------------------------
  const drawer = byId("drawer");
  const view = { row: 0, labelling: blind, shuffled: false, order: [], place: 0 };
  const show = async (row) => {
    view.row = row;
    view.place = 0;
    view.order = [];
    const block = await unpack(Math.floor(row / data.size));
    if (view.row !== row) return;
    view.block = block;
    view.one = block.rows[row % data.size];
    if (!drawer.open) drawer.showModal();
    fill();
    if (view.labelling) focus();
    drawer.scrollTop = 0;
  };
  const step = (by) => {
    const next = state.rows.indexOf(view.row) + by;
    if (next < 0 || next >= state.rows.length) return;
    const page = Math.floor(next / PAGE);
    if (page !== state.page) {
      state.page = page;
      draw();
    }
    show(state.rows[next]);
  };

  const fill = () => {
    const { one, row } = view;
    const place = state.rows.indexOf(row);
    const title = make("h2", { id: "drawer-title", dir: "auto" }, one.question || data.queries[row]);
    const tags = data.tagged[row].map((n) => make("span", { class: "chip" }, exact(data.tags[n])));
    const bar = make(
      "div",
      { class: "bar" },
      button("Previous", () => step(-1), { id: "previous", disabled: place <= 0 }),
      button("Next", () => step(1), { id: "next", disabled: place < 0 || place >= state.rows.length - 1 }),
      make("span", { class: "grow" }),
      blind ? null : button("Label", toggle, { id: "labelling", "aria-pressed": String(view.labelling) }),
      button("Close", () => drawer.close(), { id: "close" }),
    );
    const head = make("p", { class: "soft" }, exact(data.queries[row]), " ", ...tags);
    const told = trouble(row).map((text) => make("p", { class: "warning" }, text));
    const parts = [bar, head, title, ...told];
    if (scored) parts.push(scores(row));
    if (!view.labelling) parts.push(...(scored ? [gold(one)] : []), ...reasons(one), rankings(one));
    else parts.push(labelling(one));
    const held = document.activeElement.id;
    byId("drawer-inside").replaceChildren(...parts);
    // What had the focus is a new element now; without it no key would be heard.
    const again = held && byId(held);
    if (!drawer.contains(document.activeElement)) (again && !again.disabled ? again : drawer).focus();
  };

  const scores = (row) => {
    const head = data.metrics.map((name) => make("th", { scope: "col", class: "number" }, name));
    const lines = data.systems.map((name, s) =>
      make("tr", {}, make("th", { scope: "row" }, exact(name)), ...data.scores[s].map((own) => make("td", { class: "number" }, shown(own[row])))),
    );
    const corner = make("th", { scope: "col" }, "run");
    const table = make("table", {}, make("thead", {}, make("tr", {}, corner, ...head)), make("tbody", {}, ...lines));
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "scores" }, table);
  };

  const gold = (one) => {
    const line = ([name, grade, text], item) => {
      const ranks = one.systems.map((system, s) => {
        const rank = system ? system.first[item] : 0;
        const where = rank ? `rank ${rank}` : "not found";
        const kind = rank ? "chip found" : "chip missed";
        return make("span", { class: kind }, several ? exact(data.systems[s]) : null, several ? ` ${where}` : where);
      });
      const note = one.notes && one.notes[name];
      return make(
        "li",
        {},
        make("p", { dir: "auto" }, make("span", { class: "chip" }, `grade ${grade}`), " ", exact(text || name, "span"), " ", ...ranks),
        text ? make("p", { class: "soft" }, exact(name)) : null,
        ...(note || []).map((sentence) => make("p", { class: "diagnosis", dir: "auto" }, sentence)),
      );
    };
    const lines = one.gold.map((item, n) => [item[1], line(item, n)]);
    const wanted = lines.filter(([grade]) => grade > 0).map(([, element]) => element);
    const others = lines.filter(([grade]) => grade <= 0).map(([, element]) => element);
    const empty = wanted.length ? null : make("p", { class: "soft" }, "nothing relevant in gold");
    const rest = others.length
      ? make("details", {}, make("summary", {}, `${others.length} judged not relevant`), make("ul", { class: "gold" }, ...others))
      : null;
    return make("section", {}, make("h3", {}, "What should be found"), empty, make("ul", { class: "gold" }, ...wanted), rest);
  };

  const reasons = (one) =>
    one.systems.flatMap((system, s) => {
      if (!system || !system.verdicts) return [];
      const lines = system.verdicts.map(([claim, text, told, ranks, reason]) => {
        const where = VERDICTS[told] + (ranks.length ? ` rank ${ranks.join(", ")}` : "");
        const kind = told === "support" ? "chip found" : told === "failed" ? "chip" : "chip missed";
        return make("li", {}, make("p", { dir: "auto" }, exact(text || claim, "span"), " ", make("span", { class: kind }, where)), reason ? make("p", { class: "soft", dir: "auto" }, exact(reason, "span")) : null);
      });
      const name = several ? `What the judge says of ${data.systems[s]}` : "What the judge says";
      return [make("section", {}, make("h3", {}, name), make("ul", { class: "gold" }, ...lines))];
    });

  // Evidence counts characters, and so must what cuts the text into pieces.
  const marked = (text, ranges) => {
    const letters = Array.from(text);
    const parts = [];
    let from = 0;
    for (const [start, end] of [...ranges].sort((a, b) => a[0] - b[0])) {
      if (end <= from) continue;
      const low = Math.max(start, from);
      parts.push(letters.slice(from, low).join(""), make("mark", {}, letters.slice(low, end).join("")));
      from = end;
    }
    parts.push(letters.slice(from).join(""));
    return parts;
  };
  const literal = (text, wanted) => {
    const [plain, small] = [text.toLowerCase(), wanted.toLowerCase()];
    if (!small || plain.length !== text.length) return [];
    const at = plain.indexOf(small);
    const before = Array.from(text.slice(0, at)).length;
    return at < 0 ? [] : [[before, before + Array.from(text.slice(at, at + small.length)).length]];
  };
  const body = (text, ranges) => {
    if (!text) return make("p", { class: "soft" }, "no text");
    const whole = make("p", { class: "document-text", dir: "auto" }, ...marked(text, ranges));
    if (text.length <= LONG) return whole;
    whole.classList.add("short");
    const more = button("Show all", () => more.replaceWith() || whole.classList.remove("short"), { class: "more" });
    return make("div", {}, whole, more);
  };
  const worth = (grade) => {
    if (grade === null) return make("span", { class: "chip" }, "not judged");
    return make("span", { class: grade > 0 ? "chip found" : "chip missed" }, `grade ${grade}`);
  };

  const rankings = (one) => {
    const lists = one.systems.map((system, s) => {
      const head = make("h4", {}, exact(data.systems[s]));
      if (!system || !system.ranking.length) {
        return make("div", {}, head, make("p", { class: "soft" }, "no documents are kept here"));
      }
      const cards = system.ranking.map(([place, score, grade, items], n) => {
        const [name, text] = view.block.documents[place];
        const own = (system.evidence || []).filter(([rank]) => rank === n + 1);
        const ranges = own.flatMap(([, , found]) => found);
        const matched = items.map((item) => one.gold[item]).filter((item) => item && item[2]);
        const spoken = ranges.length || !text ? ranges : matched.flatMap((item) => literal(text, item[2]));
        const differs = own.flatMap(([, , , , other]) => other);
        return make(
          "li",
          { class: grade > 0 ? "document relevant" : "document" },
          make("p", { class: "document-head" }, make("b", {}, String(n + 1)), " ", name === null ? "" : exact(name), make("span", { class: "grow" }), score === null ? "" : make("span", { class: "soft" }, String(Number(score.toPrecision(5)))), scored ? worth(grade) : null),
          ...own.map(([, item, , share]) => make("p", { class: "soft" }, `${Math.round(share * 100)}% of `, exact(item), " covered up to here")),
          differs.length ? make("p", { class: "warning" }, `differs: ${differs.join(", ")}`) : null,
          body(text, spoken),
        );
      });
      return make("div", {}, head, make("ol", { class: "ranking" }, ...cards));
    });
    const side = make("div", { class: "side", tabindex: "0", role: "region", "aria-label": "ranked documents" }, ...lists);
    return make("section", {}, make("h3", {}, "What was retrieved"), side);
  };

  // Labels --------------------------------------------------------------------
  const shelf = `karat labels ${data.gold} ${data.queries.length} ${Object.values(data.fingerprints).slice(0, 20).join("")}`;
  const kept = (() => {
    try {
      return JSON.parse(localStorage.getItem(shelf) || "{}");
    } catch {
      return {};
    }
  })();
  const labels = new Map(kept.labels || []);
  let who = typeof kept.who === "string" ? kept.who : "";
  let saved = labels.size;
  const keep = () => {
    try {
      localStorage.setItem(shelf, JSON.stringify({ who, labels: [...labels] }));
    } catch {
      // Where nothing can be kept, the download is all there is.
    }
    byId("label-count").textContent = labels.size ? `${labels.size} label${labels.size > 1 ? "s" : ""}` : "";
    byId("download").hidden = labels.size === 0;
  };
  const keyOf = (place) => {
    const [name, text] = view.block.documents[place];
    return JSON.stringify([data.queries[view.row], name, name === null ? text : null]);
  };
  const toggle = () => {
    view.labelling = !view.labelling;
    view.place = 0;
    fill();
    if (view.labelling) focus();
  };
  const pool = (one) => {
    const places = new Map();
    one.systems.forEach((system) => (system ? system.ranking : []).forEach(([place], rank) => {
      if (!places.has(place) || rank < places.get(place)) places.set(place, rank);
    }));
    const order = [...places].sort((a, b) => a[1] - b[1]).map(([place]) => place);
    if (view.shuffled) {
      for (let last = order.length - 1; last > 0; last -= 1) {
        const other = Math.floor(Math.random() * (last + 1));
        [order[last], order[other]] = [order[other], order[last]];
      }
    }
    return order;
  };
  const label = (place, grade) => {
    const key = keyOf(place);
    const before = labels.get(key);
    if (before && before.grade === grade) labels.delete(key);
    else {
      const [name, text] = view.block.documents[place];
      const query = data.queries[view.row];
      labels.set(key, { query, document: name, ...(text ? { text } : {}), grade, when: new Date().toISOString(), gold_fingerprint: data.fingerprints[query] || "" });
    }
    saved = -1;
    keep();
  };
  const labelling = (one) => {
    if (!view.order.length) view.order = pool(one);
    const known = new Map(one.systems.flatMap((system) => (system ? system.ranking.map(([place, , grade]) => [place, grade]) : [])));
    const name = make("input", { type: "text", id: "who", value: who, autocomplete: "name", on: { input: (event) => { who = event.target.value; keep(); } } });
    const mixed = make("input", { type: "checkbox", id: "shuffle", on: { change: (event) => { view.shuffled = event.target.checked; view.order = []; view.place = 0; fill(); focus(); } } });
    mixed.checked = view.shuffled;
    const cards = view.order.map((place, n) => {
      const [id, text] = view.block.documents[place];
      const given = labels.get(keyOf(place));
      const choices = [...GRADES, UNDECIDED].map((grade) =>
        button(String(grade), () => { view.place = n; label(place, grade); fill(); focus(); }, { class: "grade", "aria-pressed": String(Boolean(given && given.grade === grade)), "aria-label": `grade ${grade}` }),
      );
      const ours = view.shuffled || known.get(place) === null ? null : make("span", { class: "soft" }, `in gold: ${known.get(place)}`);
      const why = given && make("input", { type: "text", class: "why", value: given.why || "", placeholder: "why", "aria-label": "why", on: { input: (event) => { given.why = event.target.value; saved = -1; keep(); } } });
      return make(
        "li",
        { class: given ? "document labelled" : "document", tabindex: n === view.place ? "0" : "-1", on: { focus: () => { view.place = n; } } },
        make("p", { class: "document-head" }, id === null ? "" : exact(id), make("span", { class: "grow" }), ours, make("span", { class: "grades", role: "group", "aria-label": "grade" }, ...choices)),
        body(text, []),
        why || null,
      );
    });
    const help = "Keys 0 to 3 grade the document in focus and go on, ? says that you can't tell; up and down move. The same key again takes a label back. Labels stay in this browser until they are downloaded; karat label apply adds them to the gold.";
    const empty = cards.length ? null : make("p", { class: "soft" }, "There are no documents to label: evaluate with --keep.");
    return make("section", {}, make("h3", {}, "Label what was retrieved"), make("p", { class: "soft" }, help), make("div", { class: "tools" }, make("label", {}, "Your name ", name), blind ? null : make("label", {}, mixed, " Shuffled, without ranks")), empty, make("ol", { class: "ranking pool" }, ...cards));
  };
  const focus = () => {
    const cards = drawer.querySelectorAll(".pool > li");
    if (cards[view.place]) cards[view.place].focus();
  };
  const download = () => {
    const lines = [...labels.values()].map((given) => JSON.stringify({ ...given, who: who.trim() }) + "\n");
    const url = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    const link = make("a", { href: url, download: "labels.jsonl" });
    document.body.append(link);
    link.click();
    link.remove();
    URL.revokeObjectURL(url);
    saved = labels.size;
  };

  drawer.addEventListener("keydown", (event) => {
    if (event.target.matches("input[type=text]") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") step(event.key === "ArrowRight" ? 1 : -1);
    if (!view.labelling || !view.order.length) return;
    const last = view.order.length - 1;
    if (/^[0-3?]$/.test(event.key)) {
      label(view.order[view.place], event.key === "?" ? UNDECIDED : Number(event.key));
      view.place = Math.min(view.place + 1, last);
      fill();
    } else if (event.key === "ArrowDown") view.place = Math.min(view.place + 1, last);
    else if (event.key === "ArrowUp") view.place = Math.max(view.place - 1, 0);
    else return;
    event.preventDefault();
    focus();
  });
  drawer.addEventListener("click", (event) => event.target === drawer && drawer.close());
  window.addEventListener("beforeunload", (event) => {
    if (labels.size && saved !== labels.size) event.preventDefault();
  });

  // Beginning -------------------------------------------------------------------
  byId("metric").append(...data.metrics.map((name, m) => make("option", { value: m }, name)));
  byId("metric-label").hidden = !several || data.metrics.length < 2;
  byId("tag").append(...data.tags.map((name, n) => make("option", { value: n }, name)));
  byId("tag-label").hidden = data.tags.length === 0;
  byId("only").querySelector("[value=differ]").hidden = !several;
  byId("only").parentElement.hidden = !scored;
  for (const id of ["metric", "tag", "only"]) byId(id).addEventListener("change", select);
  byId("search").addEventListener("input", select);
  byId("tools").addEventListener("submit", (event) => event.preventDefault());
  byId("back").addEventListener("click", () => { state.page -= 1; draw(); });
  byId("forth").addEventListener("click", () => { state.page += 1; draw(); });
  byId("download").addEventListener("click", download);
  keep();
  draw();
})();
