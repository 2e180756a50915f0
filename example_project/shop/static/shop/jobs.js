// Keeps an order's jobs up to date without a reload, until all of them have ended.
(() => {
  const progress = document.getElementById("progress");
  const sentence = document.getElementById("sentence");
  const every = 1000; // milliseconds

  const refresh = async () => {
    if (progress.querySelector("[data-ended]")) return;
    try {
      const answer = await fetch(progress.dataset.address);
      const html = answer.ok ? await answer.text() : "";
      if (html && html !== shown) show(html);
    } catch {
      // The server is away for a moment: ask again.
    }
    setTimeout(refresh, document.hidden ? every * 10 : every);
  };

  const show = (html) => {
    progress.innerHTML = shown = html;
    // A status element: screen readers speak the sentence, not the whole table, and only when it changes.
    const said = progress.querySelector("[data-sentence]").dataset.sentence;
    if (sentence.textContent !== said) sentence.textContent = said;
  };

  let shown = "";
  setTimeout(refresh, every);
})();
