// Names of clusters: typed into the cards, kept in this browser, shown in all tables.
(() => {
  const fields = [...document.querySelectorAll(".name[data-cluster]")];
  const key = "lloydformer names: " + document.querySelector(".lead").textContent;
  const first = [...document.querySelectorAll("table")].filter(
    (table) => table.rows[0] && table.rows[0].cells[0].textContent === "cluster",
  );
  const name = (field) => field.textContent.trim().replace(/\s+/g, " ");

  function show() {
    const names = new Map(fields.map((field) => [field.dataset.cluster, name(field)]));
    for (const table of first) {
      for (const row of [...table.rows].slice(1)) {
        const number = row.cells[0].textContent.split(" ")[0];
        if (names.has(number)) row.cells[0].textContent = `${number} ${names.get(number)}`.trim();
      }
    }
    const pairs = [...names].filter(([, text]) => text);
    const words = pairs.map(([number, text]) => `${number}: ${JSON.stringify(text)}`);
    document.getElementById("names-code").textContent = `names={${words.join(", ")}}`;
    return Object.fromEntries(pairs);
  }

  // A page opened as a file, or in a frame without storage, has no place for names: they last as
  // long as the page is open.
  let kept = null;
  try { kept = JSON.parse(localStorage.getItem(key)); } catch { kept = null; }
  for (const field of fields) {
    if (kept && field.dataset.cluster in kept) field.textContent = kept[field.dataset.cluster];
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); field.blur(); }
    });
    field.addEventListener("paste", (event) => {  // as plain text
      event.preventDefault();
      document.execCommand("insertText", false, event.clipboardData.getData("text/plain"));
    });
    field.addEventListener("input", () => {
      const names = show();
      try { localStorage.setItem(key, JSON.stringify(names)); } catch { /* see above */ }
    });
    field.addEventListener("blur", () => { field.textContent = name(field); });
  }
  show();

  document.getElementById("save-page").addEventListener("click", () => {
    const html = "<!DOCTYPE html>\n" + document.documentElement.outerHTML;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([html], { type: "text/html" }));
    link.download = "clusters.html";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
})();
