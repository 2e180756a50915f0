/* Keeps figures live: fetches the changing part of a page anew, and rests while nobody looks at it. */
"use strict";
{
    const begin = () => {
        const part = document.querySelector("[data-pgq-live]");
        const bar = document.querySelector("[data-pgq-bar]");
        if (!part || !bar) {
            return;
        }
        const toggle = bar.querySelector("[data-pgq-toggle]");
        const told = bar.querySelector("[data-pgq-told]");
        const every = Number(part.dataset.pgqEvery) * 1000;
        let stopped = false;
        let timer = 0;
        bar.hidden = false;

        // Who types, chooses or has a control under the finger must not lose it.
        const inUse = () => {
            const focused = document.activeElement;
            return part.contains(focused) && focused.matches("input, button, select, textarea");
        };
        // A link that has the focus gets it back: the new part has the same links in the same order.
        const places = () => [...part.querySelectorAll("a, [tabindex]")];
        const replace = (html) => {
            const place = places().indexOf(document.activeElement);
            const scrolled = [...part.querySelectorAll(".pgq-scroll")].map((box) => box.scrollLeft);
            part.innerHTML = html;
            [...part.querySelectorAll(".pgq-scroll")].forEach((box, index) => {
                box.scrollLeft = scrolled[index] || 0;
            });
            if (place >= 0 && places()[place]) {
                places()[place].focus({ preventScroll: true });
            }
        };
        const look = async () => {
            try {
                const answer = await fetch(part.dataset.pgqLive, {
                    credentials: "same-origin", headers: { "X-Requested-With": "XMLHttpRequest" },
                });
                if (!answer.ok || answer.redirected) {
                    throw new Error(answer.statusText);
                }
                const html = await answer.text();
                if (!inUse() && !stopped) {
                    replace(html);
                }
                told.textContent = "";
            } catch {
                told.textContent = told.dataset.failed;
            }
        };
        const goOn = () => {
            window.clearTimeout(timer);
            if (!stopped && !document.hidden) {
                timer = window.setTimeout(async () => { await look(); goOn(); }, every);
            }
        };
        toggle.addEventListener("click", () => {
            stopped = !stopped;
            toggle.setAttribute("aria-pressed", String(stopped));
            goOn();
        });
        document.addEventListener("visibilitychange", async () => {
            window.clearTimeout(timer);
            if (!document.hidden && !stopped) {
                await look();
                goOn();
            }
        });
        goOn();
    };
    if (document.readyState === "loading") {
        document.addEventListener("DOMContentLoaded", begin);
    } else {
        begin();
    }
}
