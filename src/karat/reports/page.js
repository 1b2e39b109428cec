// The table of queries, the drawer that shows one, and labels given in it.
(async () => {
  if (!byId("data")) return;
  const data = await unpack(byId("data"));
  const several = data.systems.length > 1;
  // Without gold there is nothing to score; who labels blind sees no run and no rank.
  const scored = data.metrics.length > 0;
  const blind = Boolean(data.blind);
  // Questions that a model wrote are labelled as a whole, not what was retrieved for them.
  const { drafts } = data;
  const [GIVEN, LABEL] = drafts ? ["decision", "decision"] : ["grade", "label"];
  // What names a row in the address: its query, which may stand there more than once.
  const places = new Map();
  const names = data.queries.map((query, row) => {
    const name = places.has(query) ? `${query} (${row + 1})` : query;
    places.set(name, row);
    return name;
  });
  const PAGE = 100;
  const SIDE_BY_SIDE = 4;
  const UNDECIDED = "can't tell";
  const CHOICES = drafts ? data.grades : [...data.grades, UNDECIDED];
  const choiceOf = (key) => CHOICES.find((choice, n) => key === (drafts ? choice[0] : choice === UNDECIDED ? "?" : String(n)));
  const VERDICTS = { support: "supported by", contradict: "contradicted by", partial: "stated in part by", none: "not supported", failed: "no verdict" };
  const DECIDING = [
    ["k, f, d", "in an open question: keep it, fix it, drop it"],
    ["u", "open the next question without a decision"],
    ["←, →", "previous and next open question"],
    ["?", "these keys"],
  ];
  const KEYS = [
    ["/", "search"],
    ["j, k", "next and previous query"],
    ["Enter, Esc", "open the query in focus, close it"],
    ["n", several ? "open the next query that got worse" : "open the next query that is not perfect"],
    [`0 to ${data.grades.length - 1}, u`, "while labelling: grade the document in focus, go to the next unjudged one"],
    ["?", "these keys; while labelling: can't tell"],
  ];
  if (drafts) KEYS.splice(3, 3, ...DECIDING);

  const shown = (score) => (score === null ? "–" : score.toFixed(4));
  const signed = (value) => (value > 0 ? "+" : "") + value.toFixed(4);

  // The texts -----------------------------------------------------------------
  const packedRows = [...document.querySelectorAll("script.block")];
  const packedTexts = [...document.querySelectorAll("script.texts")];
  const once = (load, done = new Map()) => (block) => done.get(block) || done.set(block, load(block)).get(block);
  const texts = [];
  const loadRows = once((block) => unpack(packedRows[block]));
  const loadTexts = once(async (block) => {
    for (const [n, text] of (await unpack(packedTexts[block])).entries()) texts[data.starts[block] + n] = text;
  });
  const rowOf = async (row) => (await loadRows(Math.floor(row / data.size)))[row % data.size];
  const numbersOf = (one) => [...one.systems.flatMap((system) => (system ? system.ranking : [])), ...one.gold.map((item) => item[2]).filter((n) => n !== null)];
  const withTexts = async (row) => {
    const one = await rowOf(row);
    const blocks = numbersOf(one).map((n) => data.starts.findLastIndex((start) => start <= n));
    await Promise.all([...new Set(blocks)].map(loadTexts));
    for (const item of one.gold) item[0] ??= texts[item[2]][0];
    return one;
  };

  // The table ---------------------------------------------------------------
  const CONTROLS = ["find", "metric", "run", "tag", "cause", "show"];
  const state = { sort: "", page: 0, rows: [], q: "" };
  const value = (id) => byId(id).value;
  const metric = () => Math.max(data.metrics.indexOf(value("metric")), 0);
  const sign = (m) => data.signs[m] || 1;
  const cutoff = () => Number((/@(\d+)/.exec(data.metrics[metric()] || "") || [0, Infinity])[1]);
  const candidate = () => Math.max(data.systems.indexOf(value("run")), several ? 1 : 0);
  const score = (s, m, row) => (data.scores[s][m] ? data.scores[s][m][row] : null);
  const change = (row, m) => {
    const [before, after] = [score(0, m, row), score(candidate(), m, row)];
    return before === null || after === null ? null : after - before;
  };
  const worth = (row, m) => (several ? change(row, m) : score(0, m, row));
  const beside = () => data.systems.map((_, s) => s).filter((s) => data.systems.length <= SIDE_BY_SIDE || s === 0 || s === candidate());
  const namesOf = (facet, row) => data.facets[facet].rows[row].map((n) => data.facets[facet].names[n]);
  const trouble = (row) => data.status.map((told) => told[row]).filter(Boolean);
  const columns = () => {
    const all = [{ key: "query", name: "query", value: (row) => data.queries[row], text: true }];
    if (data.questions.some(Boolean)) all.push({ key: "question", name: "question", value: (row) => data.questions[row], text: true });
    if (data.facets.tag.names.length) all.push({ key: "tags", name: "tags", value: (row) => namesOf("tag", row).join(", "), text: true });
    if (data.alike) all.push({ key: "alike", name: "rbo", value: (row) => data.alike[row], score: true });
    if (!scored) return all;
    for (const s of beside()) {
      const metrics = several ? [metric()] : data.metrics.map((_, m) => m);
      for (const m of metrics) {
        const name = several ? data.systems[s] : data.metrics[m];
        all.push({ key: `score ${name}`, name, value: (row) => score(s, m, row), score: true });
      }
      all.push({ key: `first ${s}`, name: "first rank", value: (row) => data.first[s][row] || null });
    }
    if (several) all.push({ key: "change", name: "change", value: (row) => change(row, metric()), signed: true });
    return all;
  };
  const SHOW = {
    "": () => true,
    worse: (row, m) => change(row, m) * sign(m) < 0,
    better: (row, m) => change(row, m) * sign(m) > 0,
    same: (row, m) => change(row, m) === 0,
    undecided: (row) => new Set(data.metrics.map((_, m) => Math.sign(change(row, m) * data.signs[m])).filter(Boolean)).size > 1,
    zero: (row) => data.first.some((first) => !first[row]),
    part: (row, m) => beside().some((s) => score(s, m, row) !== null && score(s, m, row) < 1),
    trouble: (row, m) => trouble(row).length > 0 || data.systems.some((_, s) => score(s, m, row) === null),
  };

  // Which rows have a text or a document in which the words stand; null: not yet known.
  let everything = null;
  const rowsWithText = (wanted) => {
    if (wanted.length < 2) return new Set();
    if (!everything) {
      const all = async () => {
        await Promise.all(packedTexts.map((_, block) => loadTexts(block)));
        const rows = await Promise.all(data.queries.map((_, row) => rowOf(row)));
        everything.small = texts.map(([name, text]) => `${name || ""}\n${text || ""}`.toLowerCase());
        everything.numbers = rows.map(numbersOf);
        select();
      };
      everything = {};
      all();
    }
    if (!everything.numbers) return null;
    const hits = new Set(everything.small.flatMap((text, n) => (text.includes(wanted) ? [n] : [])));
    return new Set(everything.numbers.flatMap((own, row) => (own.some((n) => hits.has(n)) ? [row] : [])));
  };

  const select = () => {
    const wanted = value("find").trim().toLowerCase();
    const within = wanted ? rowsWithText(wanted) : null;
    const keep = SHOW[value("show")] || SHOW[""];
    const m = metric();
    const chosen = ["tag", "cause"].filter((facet) => value(facet));
    const asks = (row) => data.queries[row].toLowerCase().includes(wanted) || data.questions[row].toLowerCase().includes(wanted);
    const says = (row) => !wanted || asks(row) || (within && within.has(row));
    const fits = (row) => keep(row, m) && chosen.every((facet) => namesOf(facet, row).includes(value(facet))) && says(row);
    state.rows = data.queries.map((_, row) => row).filter(fits);
    state.searching = Boolean(wanted) && within === null;
    sortRows();
    state.page = Math.min(state.page, Math.max(Math.ceil(state.rows.length / PAGE) - 1, 0));
    draw();
  };
  // Worst first unless a column was chosen; other metrics decide between equals.
  const sorting = () => {
    const all = columns();
    const down = state.sort.startsWith("-");
    const column = all.find((one) => one.key === state.sort.replace(/^-/, ""));
    if (column) return { column, direction: down ? -1 : 1 };
    const key = data.alike ? "alike" : several ? "change" : `score ${data.leading}`;
    return { column: all.find((one) => one.key === key), direction: sign(metric()) };
  };
  const sortRows = () => {
    const { column, direction } = sorting();
    if (!column) return;
    const order = new Intl.Collator(undefined, { numeric: true }).compare;
    const values = new Map(state.rows.map((row) => [row, column.value(row)]));
    const others = new Map(state.rows.map((row) => [row, data.metrics.reduce((sum, _, m) => sum + (worth(row, m) || 0) * data.signs[m], 0)]));
    state.rows.sort((a, b) => {
      const [x, y] = [values.get(a), values.get(b)];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return direction * (column.text ? order(x, y) : x - y) || others.get(a) - others.get(b) || a - b;
    });
  };

  const draw = () => {
    const all = columns();
    const { column: sorted, direction } = sorting();
    const heads = all.map((column) => {
      const active = sorted && column.key === sorted.key;
      const arrow = active ? (direction < 0 ? " ↓" : " ↑") : "";
      const sort = () => {
        state.sort = active && direction > 0 ? `-${column.key}` : column.key;
        changed(true);
      };
      const [ordered, kind] = [direction < 0 ? "descending" : "ascending", column.text ? `text ${column.key}` : "number"];
      return make("th", { scope: "col", class: kind, "aria-sort": active ? ordered : "none" }, button(column.name + arrow, sort, { class: "sort" }));
    });
    byId("table").tHead.replaceChildren(make("tr", {}, ...heads));
    const from = state.page * PAGE;
    const rows = state.rows.slice(from, from + PAGE).map((row) => {
      const cells = all.map((column) => {
        const cell = column.value(row);
        if (column.key === "query") {
          return make("th", { scope: "row", class: "text" }, button(exact(cell), () => show(row), { class: "open" }));
        }
        if (column.text) return make("td", { class: `text ${column.key}`, dir: "auto" }, cell);
        const text = cell === null ? "–" : column.score ? shown(cell) : column.signed ? signed(cell) : String(cell);
        const made = make("td", { class: "number" }, text);
        if (column.score && cell !== null && cell >= 0 && cell <= 1) {
          made.classList.add("share");
          made.style.setProperty("--share", cell);
        }
        if (column.signed && cell) made.classList.add(cell * sign(metric()) > 0 ? "good" : "bad");
        return made;
      });
      const line = make("tr", { on: { click: (event) => event.target.closest("button") || show(row) } }, ...cells);
      if (trouble(row).length) line.title = trouble(row).join("; ");
      return line;
    });
    byId("table").tBodies[0].replaceChildren(...rows);
    const last = Math.min(from + PAGE, state.rows.length);
    const count = state.rows.length ? `${from + 1} to ${last} of ${state.rows.length}` : "no query fits";
    byId("where").textContent = count + (state.searching ? ", searching texts …" : "");
    byId("back").disabled = from === 0;
    byId("forth").disabled = last >= state.rows.length;
    byId("clear").hidden = !["find", "tag", "cause", "show"].some(value);
  };
  const asCsv = () => {
    const all = columns();
    const cell = (text) => {
      const safe = typeof text === "string" && /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text ?? "";
      return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    const lines = [all.map((column) => column.name), ...state.rows.map((row) => all.map((column) => column.value(row)))];
    store("queries.csv", "text/csv", lines.map((line) => `${line.map(cell).join(",")}\r\n`).join(""));
  };

  // The address: what is shown can be linked, reloaded and gone back to. ---------
  let address = null;
  const write = (push) => {
    const params = new URLSearchParams();
    if (state.q) params.set("q", state.q);
    for (const id of CONTROLS) if (value(id) !== first[id]) params.set(id, value(id));
    if (state.sort) params.set("sort", state.sort);
    if (state.page) params.set("page", state.page + 1);
    const hash = `#${params}`.replaceAll("%40", "@");
    if (hash === (location.hash || "#")) return;
    try {
      history[push ? "pushState" : "replaceState"](null, "", hash);
    } catch {
      // A page within another one may have no address of its own.
    }
    address = location.hash;
  };
  const read = () => {
    if (location.hash === address || (location.hash.length > 1 && !location.hash.includes("="))) return;
    address = location.hash;
    const params = new URLSearchParams(location.hash.slice(1));
    for (const id of CONTROLS) {
      const wanted = params.get(id) ?? first[id];
      byId(id).value = wanted;
      if (byId(id).value !== wanted) byId(id).value = first[id];
    }
    state.sort = params.get("sort") || "";
    state.page = Math.max(Number(params.get("page") || 1) - 1, 0) || 0;
    select();
    const row = places.get(params.get("q"));
    state.q = row === undefined ? "" : names[row];
    if (row !== undefined) show(row, null);
    else if (drawer.open) drawer.close();
  };
  const changed = (push) => {
    state.page = 0;
    select();
    write(push);
  };

  // The drawer ------------------------------------------------------------------
  const drawer = byId("drawer");
  const view = { row: 0, labelling: blind, shuffled: false, order: [], place: 0, asked: false };
  const show = async (row, push = true) => {
    Object.assign(view, { row, place: 0, order: [] });
    const one = await withTexts(row);
    if (view.row !== row) return;
    view.one = one;
    state.q = names[row];
    if (!drawer.open) drawer.showModal();
    if (push !== null) write(push);
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
    show(state.rows[next], false);
  };
  const nextLoss = () => {
    const from = drawer.open ? state.rows.indexOf(view.row) : -1;
    const lost = (row) => (several ? SHOW.worse(row, metric()) : SHOW.part(row, metric()));
    const row = state.rows.slice(from + 1).find(lost);
    if (row !== undefined) show(row, !drawer.open);
  };

  const fill = () => {
    const { one, row } = view;
    const place = state.rows.indexOf(row);
    const title = make("h2", { id: "drawer-title", dir: "auto" }, one.question || data.questions[row] || data.queries[row]);
    const chips = ["tag", "cause"].flatMap((facet) =>
      namesOf(facet, row).map((name) => make("a", { class: "chip", href: `#${new URLSearchParams([[facet, name]])}` }, facet === "cause" ? "missed: " : "", exact(name))),
    );
    const bar = make(
      "div",
      { class: "bar" },
      button("Previous", () => step(-1), { id: "previous", disabled: place <= 0 }),
      button("Next", () => step(1), { id: "next", disabled: place < 0 || place >= state.rows.length - 1 }),
      make("span", { class: "grow" }),
      blind ? null : button("Label", toggle, { id: "labelling", "aria-pressed": String(view.labelling) }),
      button("Close", () => drawer.close(), { id: "close" }),
    );
    const head = make("p", { class: "soft" }, exact(data.queries[row]), " ", ...chips);
    const told = trouble(row).map((text) => make("p", { class: "warning" }, text));
    const parts = [bar, head, title, ...told];
    if (scored) parts.push(scores(one, row));
    parts.push(...(view.labelling ? [labelling(one), ...(drafts ? [rankings(one), ...vouched()] : [])] : [...(scored ? [gold(one)] : []), ...reasons(one), rankings(one)]));
    const held = document.activeElement.id;
    byId("drawer-inside").replaceChildren(...parts);
    // What had the focus is a new element now; without it no key would be heard.
    const again = held && byId(held);
    if (!drawer.contains(document.activeElement)) (again && !again.disabled ? again : drawer).focus();
  };

  const scores = (one, row) => {
    const head = data.metrics.map((name) => make("th", { scope: "col", class: "number" }, name));
    const line = (name, own) => make("tr", {}, make("th", { scope: "row" }, name), ...own.map((value) => make("td", { class: "number" }, value)));
    const lines = data.systems.flatMap((name, s) => {
      const before = line(exact(name), data.metrics.map((_, m) => shown(score(s, m, row))));
      const after = rescored(one, s);
      return after ? [before, line("with your labels", after.map((value) => (value === undefined ? "?" : shown(value))))] : [before];
    });
    const corner = make("th", { scope: "col" }, "run");
    const table = make("table", {}, make("thead", {}, make("tr", {}, corner, ...head)), make("tbody", {}, ...lines));
    return make("div", { class: "scroll", id: "drawer-scores", tabindex: "0", role: "region", "aria-label": "scores" }, table);
  };

  const firstRank = (system, item) => (system ? (system.found.find(([, found]) => found === item) || [0])[0] : 0);
  const gold = (one) => {
    const line = ([name, grade, number], item) => {
      const ranks = one.systems.map((system, s) => {
        const rank = firstRank(system, item);
        const where = !rank ? "not found" : rank <= cutoff() ? `rank ${rank}` : `rank ${rank}, below ${cutoff()}`;
        const kind = rank && rank <= cutoff() ? "chip found" : "chip missed";
        return make("span", { class: kind }, several ? exact(data.systems[s]) : null, several ? ` ${where}` : where);
      });
      const note = one.notes && one.notes[name];
      const text = number === null ? null : texts[number][1];
      const head = make("p", {}, make("span", { class: "chip" }, `grade ${grade}`), " ", exact(name), " ", ...ranks);
      const notes = (note || []).map((sentence) => make("p", { class: "diagnosis", dir: "auto" }, sentence));
      return make("li", {}, head, ...notes, text ? body(text, []) : null);
    };
    const lines = one.gold.map((item, n) => [item[1], line(item, n)]);
    const wanted = lines.filter(([grade]) => grade > 0).map(([, element]) => element);
    const others = lines.filter(([grade]) => grade <= 0).map(([, element]) => element);
    const empty = wanted.length ? null : make("p", { class: "soft" }, "nothing relevant in gold");
    const rest = others.length ? make("details", {}, make("summary", {}, `${others.length} judged not relevant`), make("ul", { class: "gold" }, ...others)) : null;
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

  const itemsAt = (system, rank) => system.found.filter(([at]) => at === rank).map(([, item]) => item);
  const gradeAt = (one, system, rank) => {
    const own = itemsAt(system, rank).map((item) => one.gold[item][1]);
    if (own.length) return Math.max(...own);
    const [name] = texts[system.ranking[rank - 1]];
    const item = one.gold.find((gold) => name !== null && gold[0] === name);
    return item ? item[1] : null;
  };
  const graded = (grade) => {
    if (grade === null) return make("span", { class: "chip" }, "not judged");
    return make("span", { class: grade > 0 ? "chip found" : "chip missed" }, `grade ${grade}`);
  };

  const rankings = (one) => {
    const lists = one.systems.map((system, s) => {
      const head = make("h4", {}, exact(data.systems[s]));
      if (!system || !system.ranking.length) {
        return make("div", {}, head, make("p", { class: "soft" }, "no documents are kept here"));
      }
      const cards = system.ranking.map((number, n) => {
        const [name, text] = texts[number];
        const points = system.scores[n] ?? null;
        const grade = gradeAt(one, system, n + 1);
        const own = (system.evidence || []).filter(([rank]) => rank === n + 1);
        const ranges = own.flatMap(([, , found]) => found);
        const matched = itemsAt(system, n + 1).map((item) => one.gold[item][2]).filter((at) => at !== null && at !== number);
        const spoken = ranges.length || !text ? ranges : matched.flatMap((at) => literal(text, texts[at][1] || ""));
        const differs = own.flatMap(([, , , , other]) => other);
        const head = make("p", { class: "document-head" }, make("b", {}, String(n + 1)), " ", name === null ? "" : exact(name), make("span", { class: "grow" }), points === null ? "" : make("span", { class: "soft" }, String(points)), scored ? graded(grade) : null);
        const covered = own.map(([, item, , share]) => make("p", { class: "soft" }, `${Math.round(share * 100)}% of `, exact(item), " covered up to here"));
        const other = differs.length ? make("p", { class: "warning" }, `differs: ${differs.join(", ")}`) : null;
        return make("li", { class: grade > 0 ? "document relevant" : "document" }, head, ...covered, other, body(text, spoken));
      });
      return make("div", {}, head, make("ol", { class: "ranking" }, ...cards));
    });
    const side = make("div", { class: "side", tabindex: "0", role: "region", "aria-label": "ranked documents" }, ...lists);
    return make("section", {}, make("h3", {}, drafts ? "What answers it" : "What was retrieved"), side);
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
    byId("label-count").textContent = labels.size ? `${labels.size} ${LABEL}${labels.size > 1 ? "s" : ""}` : "";
    byId("download").hidden = labels.size === 0;
  };
  const keyOf = (number, row = view.row) => {
    if (drafts) return data.queries[row];
    const [name, text] = texts[number];
    return JSON.stringify([data.queries[row], name, name === null ? text : null]);
  };
  const toggle = () => {
    Object.assign(view, { labelling: !view.labelling, place: 0 });
    fill();
    if (view.labelling) focus();
  };
  const pool = (one) => {
    if (drafts) return [null];
    const ranks = new Map();
    for (const system of one.systems) {
      (system ? system.ranking : []).forEach((number, rank) => {
        if (!ranks.has(number) || rank < ranks.get(number)) ranks.set(number, rank);
      });
    }
    const places = [...ranks].map(([number, rank]) => [view.shuffled ? Math.random() : rank, number]);
    return places.sort((a, b) => a[0] - b[0]).map(([, number]) => number);
  };
  const known = (one) => new Map(one.systems.flatMap((system) => (system ? system.ranking.map((number, n) => [number, gradeAt(one, system, n + 1)]) : [])));
  const label = (number, grade) => {
    if (!who.trim()) {
      view.asked = true;
      return false;
    }
    const key = keyOf(number);
    const before = labels.get(key);
    if (before && before[GIVEN] === grade) labels.delete(key);
    else {
      const query = data.queries[view.row];
      const [name, text] = drafts ? [] : texts[number];
      const what = drafts ? { query } : { query, document: name, ...(text ? { text } : {}) };
      labels.set(key, { ...what, ...(before && before.why ? { why: before.why } : {}), [GIVEN]: grade, when: new Date().toISOString(), gold_fingerprint: data.fingerprints[query] || "" });
    }
    saved = -1;
    keep();
    return true;
  };
  const give = (n, grade, forth) => {
    view.place = n;
    const done = label(view.order[n], grade);
    const asks = [UNDECIDED, "fix", "drop"].includes(grade);
    if (done && forth && !asks) view.place = Math.min(n + 1, view.order.length - 1);
    fill();
    const note = drawer.querySelectorAll(".pool > li")[n].querySelector("textarea, .why");
    if (!done) byId("who").focus();
    else if (asks && note) note.focus();
    else if (drafts && forth && note) step(1);
    else focus();
  };
  const nextUnjudged = async () => {
    const open = (one, row, order) => {
      const grades = known(one);
      return order.findIndex((number, n) => (row !== view.row || n > view.place) && (drafts || grades.get(number) === null) && !labels.has(keyOf(number, row)));
    };
    for (const row of [view.row, ...state.rows.slice(state.rows.indexOf(view.row) + 1)]) {
      const one = await withTexts(row);
      const order = row === view.row ? view.order : pool(one);
      const place = open(one, row, order);
      if (place < 0) continue;
      if (row !== view.row) await show(row, false);
      Object.assign(view, { order, place });
      fill();
      focus();
      return;
    }
    byId("unjudged-note").textContent = drafts ? "No question without a decision follows." : "Nothing unjudged follows.";
  };
  // A question that a model wrote: its answer, or both to be changed.
  const draft = (given) => {
    const { reference } = drafts[view.row];
    if (!given || given[GIVEN] !== "fix") return [body(reference, [])];
    const field = (name, before) => {
      const edited = ({ target }) => {
        given[name] = target.value;
        saved = -1;
        keep();
      };
      return make("label", { class: "soft" }, name, make("textarea", { rows: 3, dir: "auto", on: { input: edited } }, given[name] ?? before));
    };
    return [field("question", view.one.question || data.questions[view.row]), field("reference", reference)];
  };
  const vouched = () => {
    const { claims, checks } = drafts[view.row];
    const said = Object.entries(checks).map(([name, why]) => make("li", {}, make("b", {}, name), ": ", exact(why)));
    const parts = [["Claims of the answer", claims.map((claim) => make("li", { dir: "auto" }, claim))], ["Checks that it passed", said]];
    return parts.filter(([, lines]) => lines.length).map(([title, lines]) => make("section", {}, make("h3", {}, title), make("ul", { class: "gold" }, ...lines)));
  };
  const labelling = (one) => {
    if (!view.order.length) view.order = pool(one);
    const grades = known(one);
    const named = ({ target }) => {
      who = target.value;
      keep();
    };
    const name = make("input", { type: "text", id: "who", value: who, autocomplete: "name", required: true, on: { input: named, keydown: ({ key }) => key === "Enter" && focus() } });
    const mix = ({ target }) => {
      Object.assign(view, { shuffled: target.checked, order: [], place: 0 });
      fill();
      focus();
    };
    const mixed = make("input", { type: "checkbox", id: "shuffle", checked: view.shuffled, on: { change: mix } });
    const cards = view.order.map((number, n) => {
      const [id, text] = drafts ? ["Reference answer"] : texts[number];
      const given = labels.get(keyOf(number));
      const choices = CHOICES.map((grade) =>
        button(String(grade), () => give(n, grade, false), { class: "grade", "aria-pressed": String(Boolean(given && given[GIVEN] === grade)), "aria-label": `${GIVEN} ${grade}` }),
      );
      const ours = view.shuffled || (grades.get(number) ?? null) === null ? null : make("span", { class: "soft" }, `in gold: ${grades.get(number)}`);
      const noted = ({ target }) => {
        given.why = target.value;
        saved = -1;
        keep();
      };
      const done = ({ key }) => {
        if (key !== "Enter") return;
        view.place = Math.min(n + 1, view.order.length - 1);
        if (drafts) step(1);
        else focus();
      };
      const why = given && make("input", { type: "text", class: "why", value: given.why || "", placeholder: given.grade === UNDECIDED ? "what makes it hard to tell?" : "why", "aria-label": "why", on: { input: noted, keydown: done } });
      const head = make("p", { class: "document-head" }, id === null ? "" : exact(id), make("span", { class: "grow" }), ours, make("span", { class: "grades", role: "group", "aria-label": GIVEN }, ...choices));
      const kind = given ? "document labelled" : "document";
      return make("li", { class: kind, tabindex: n === view.place ? "0" : "-1", on: { focus: () => { view.place = n; } } }, head, ...(drafts ? draft(given) : [body(text, [])]), why || null);
    });
    const deciding = "Keys: k keeps the question as it is and goes on, f fixes it, d drops it, u goes to the next without a decision, arrows go to others; Enter in the line for reasons goes on. The same key again takes a decision back. Decisions stay in this browser until they are downloaded.";
    const help = drafts ? deciding : `Keys 0 to ${data.grades.length - 1} grade the document in focus and go on, ? says that you can't tell, u goes to the next unjudged one; up and down move. The same key again takes a label back. Labels stay in this browser until they are downloaded; karat label apply adds them to the gold.`;
    const empty = cards.length ? null : make("p", { class: "soft" }, "There are no documents to label: evaluate with --keep.");
    const nameless = view.asked && !who.trim() ? make("p", { class: "warning", role: "alert" }, `Write your name first: every ${LABEL} is signed.`) : null;
    const next = button(drafts ? "Next undecided" : "Next unjudged", nextUnjudged, { id: "unjudged" });
    const tools = make("div", { class: "tools" }, make("label", {}, "Your name ", name), blind ? null : make("label", {}, mixed, " Shuffled, without ranks"), next, make("span", { id: "unjudged-note", role: "status" }));
    const title = make("h3", {}, drafts ? "Is this a good question?" : "Label what was retrieved");
    return make("section", {}, title, make("p", { class: "soft" }, help), tools, nameless, empty, make("ol", { class: "ranking pool" }, ...cards));
  };
  const focus = () => {
    const cards = drawer.querySelectorAll(".pool > li");
    if (cards[view.place]) cards[view.place].focus();
  };

  // What a query scores with the labels given here; null where there are none, and
  // undefined where a metric reads more than grades of ids.
  const METRIC = /^(hit|recall|precision|rr|ndcg|ap)(?:@(\d+))?$/;
  const rescored = (one, s) => {
    const system = one.systems[s];
    const own = [...labels.values()].filter((given) => given.query === data.queries[view.row] && given.document !== null && given.grade !== UNDECIDED);
    if (!system || !data.plain || !own.length) return null;
    const items = new Map(one.gold.map(([name, grade], item) => [name, { grade, rank: firstRank(system, item) }]));
    const ranking = system.ranking.map((number) => texts[number][0]);
    for (const { document: name, grade } of own) items.set(name, { grade, rank: ranking.indexOf(name) + 1 || (items.get(name) || { rank: 0 }).rank });
    const relevant = [...items.values()].filter(({ grade }) => grade > 0);
    return data.metrics.map((name) => {
      const [, family, at] = METRIC.exec(name) || [];
      if (!family) return undefined;
      const k = Number(at || Infinity);
      const top = relevant.filter(({ rank }) => rank && rank <= k).sort((a, b) => a.rank - b.rank);
      const gain = (row) => row.reduce((sum, [grade, rank]) => sum + grade / Math.log2(rank + 1), 0);
      const best = relevant.map(({ grade }) => grade).sort((a, b) => b - a).slice(0, k);
      if (family === "precision") return at ? top.length / k : undefined;
      if (!relevant.length) return null;
      return {
        hit: () => Number(top.length > 0),
        recall: () => top.length / relevant.length,
        rr: () => (top.length ? 1 / top[0].rank : 0),
        ap: () => top.reduce((sum, { rank }, n) => sum + (n + 1) / rank, 0) / relevant.length,
        ndcg: () => gain(top.map(({ grade, rank }) => [grade, rank])) / gain(best.map((grade, n) => [grade, n + 1])),
      }[family]();
    });
  };

  // Keys ------------------------------------------------------------------------
  const help = make("dialog", { id: "help", "aria-labelledby": "help-title" });
  const rows = KEYS.map(([key, what]) => make("tr", {}, make("th", { scope: "row" }, make("kbd", {}, key)), make("td", {}, what)));
  help.append(make("h2", { id: "help-title" }, "Keys"), make("table", {}, make("tbody", {}, ...rows)), button("Close", () => help.close(), {}));
  document.body.append(help);
  const walk = (by) => {
    const all = [...document.querySelectorAll("button.open")];
    const next = all.indexOf(document.activeElement) + by;
    if (all.length) all[Math.min(Math.max(next, 0), all.length - 1)].focus();
  };
  const labelKey = (key) => {
    const choice = choiceOf(key);
    if (choice !== undefined) give(view.place, choice, true);
    else if (key === "u") nextUnjudged();
    else if (key === "ArrowDown" || key === "ArrowUp") {
      view.place = Math.min(Math.max(view.place + (key === "ArrowDown" ? 1 : -1), 0), view.order.length - 1);
      focus();
    } else return false;
    return true;
  };
  document.addEventListener("keydown", (event) => {
    const { key } = event;
    if (event.target.matches("input:not([type=checkbox]), select, textarea") || event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    const moves = { j: 1, k: -1, ...(drawer.open ? { ArrowRight: 1, ArrowLeft: -1 } : {}) };
    if (drawer.open && view.labelling && view.order.length && labelKey(key)) event.preventDefault();
    else if (key in moves) (drawer.open ? step : walk)(moves[key]);
    else if (key === "n") nextLoss();
    else if (key === "?") help.showModal();
    else if (key === "/" && !drawer.open) {
      event.preventDefault();
      byId("find").focus();
    }
  });

  // Beginning -------------------------------------------------------------------
  const options = (id, names, least) => {
    byId(id).append(...names.map((name) => make("option", { value: name }, name)));
    byId(id).parentElement.hidden = names.length < least;
  };
  options("metric", data.metrics, 2);
  options("run", scored ? data.systems.slice(1) : [], 2);
  for (const facet of ["tag", "cause"]) options(facet, data.facets[facet].names, 1);
  byId("metric").value = data.leading;
  byId("download").textContent = `Download ${LABEL}s`;
  byId("show").parentElement.hidden = !scored;
  for (const name of ["worse", "better", "undecided", "same"]) byId("show").querySelector(`[value=${name}]`).hidden = !several;
  const first = Object.fromEntries(CONTROLS.map((id) => [id, value(id)]));
  for (const id of CONTROLS) byId(id).addEventListener(id === "find" ? "input" : "change", () => changed(id !== "find"));
  const turn = (by) => {
    state.page += by;
    draw();
    write(true);
  };
  const clear = () => {
    for (const id of ["find", "tag", "cause", "show"]) byId(id).value = first[id];
    changed(true);
  };
  const download = () => {
    const lines = [...labels.values()].map((given) => `${JSON.stringify({ ...given, who: who.trim() })}\n`);
    store(`${LABEL}s.jsonl`, "application/jsonl", lines.join(""));
    saved = labels.size;
  };
  const acts = { back: () => turn(-1), forth: () => turn(1), clear, download, csv: asCsv, keys: () => help.showModal() };
  for (const [id, act] of Object.entries(acts)) byId(id).addEventListener("click", act);
  byId("tools").addEventListener("submit", (event) => event.preventDefault());
  drawer.addEventListener("click", (event) => event.target === drawer && drawer.close());
  drawer.addEventListener("close", () => {
    if (!state.q) return;
    state.q = "";
    write(true);
  });
  document.addEventListener("click", (event) => {
    const dot = event.target.closest("[data-q]");
    if (dot && places.has(dot.dataset.q)) show(places.get(dot.dataset.q));
    const link = event.target.closest('main a[href^="#"], nav a, a.chip');
    if (!link) return;
    const to = link.getAttribute("href").slice(1);
    if (to.startsWith("q=")) return;
    if (!to.includes("=")) event.preventDefault();
    byId(to.includes("=") ? "queries" : to).scrollIntoView();
  });
  for (const event of ["popstate", "hashchange"]) window.addEventListener(event, read);
  window.addEventListener("beforeunload", (event) => {
    if (labels.size && saved !== labels.size) event.preventDefault();
  });
  keep();
  select();
  read();
})();
