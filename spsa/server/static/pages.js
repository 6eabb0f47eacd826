// Brings the live regions of a page up to date: fetches the page again and exchanges what differs.
"use strict";

const seconds = Number(document.body.dataset.refreshSeconds);
const connection = document.getElementById("connection");
let etag = null;

// On a phone only the answer and the alarms are shown at once.
if (matchMedia("(max-width: 40rem)").matches) document.getElementById("rest")?.removeAttribute("open");

async function refresh() {
  const headers = etag === null ? {} : { "If-None-Match": etag };
  const response = await fetch(location.href, { headers, cache: "no-store" });
  if (response.status === 401) location.reload();
  if (response.status === 304) return;
  if (!response.ok) throw new Error(`status ${response.status}`);
  etag = response.headers.get("ETag");
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  document.title = page.title;
  for (const fresh of page.querySelectorAll("[data-live]")) exchange(fresh);
  document.dispatchEvent(new Event("refreshed"));
}

function exchange(fresh) {
  const old = document.getElementById(fresh.id);
  if (old === null) return;
  const opened = [...old.querySelectorAll("details[open]")].map((details) => details.id);
  for (const id of opened) fresh.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", "");
  if (old.outerHTML === fresh.outerHTML) return;
  const focused = old.contains(document.activeElement) ? mark(document.activeElement) : null;
  const { scrollLeft, scrollTop } = old;
  old.replaceWith(fresh);
  if (scrollLeft || scrollTop) fresh.scrollTo(scrollLeft, scrollTop);
  if (focused !== null) find(fresh, focused)?.focus({ preventScroll: true });
}

// How to find the element that has the focus in the new region: by its id or its address.
function mark(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  if (element.hasAttribute("href")) return `[href="${CSS.escape(element.getAttribute("href"))}"]`;
  const details = element.closest("details");
  return details === null ? null : `#${CSS.escape(details.id)} > ${element.localName}`;
}

function find(region, selector) {
  return region.matches(selector) ? region : region.querySelector(selector);
}

function tell(sentence) {
  if (connection.textContent !== sentence) connection.textContent = sentence;
}

async function live() {
  if (!document.hidden) {
    try {
      await refresh();
      tell("");
    } catch {
      tell("The server does not answer; what is shown may be old.");
    }
  }
  setTimeout(live, 1000 * seconds);
}

if (seconds > 0) setTimeout(live, 1000 * seconds);
