/* Keeps the page of a bulk operation up to date: fetches it every two seconds while it is seen and something in it
   may still change, and puts the parts that are marked as live in place of the old ones. */
"use strict";
(function () {
    const EVERY = 2000;

    function page() {
        return document.querySelector(".pgq-bulk[data-goes-on]");
    }

    async function look() {
        if (document.hidden || !page()) {
            return;
        }
        const answer = await fetch(location.href);
        if (!answer.ok || answer.redirected) {
            page().removeAttribute("data-goes-on"); // logged out, or gone: the page keeps what it last knew
            return;
        }
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of document.querySelectorAll("[data-live]")) {
            const now = fresh.getElementById(part.id);
            if (now && now.innerHTML !== part.innerHTML) {
                part.innerHTML = now.innerHTML;
            }
        }
        if (!fresh.querySelector(".pgq-bulk[data-goes-on]")) {
            page().removeAttribute("data-goes-on");
        }
    }

    const again = () => look().catch(() => {}); // a look that failed is followed by the next
    setInterval(again, EVERY);
    document.addEventListener("visibilitychange", again);
})();
