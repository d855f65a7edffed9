// Search over the sections in search-index.js: every word must occur; words in titles count more.
"use strict";

const UP = document.currentScript.dataset.up;
const RESULTS_MAX = 12;
const TITLE_WEIGHT = 20;
const PAGE_WEIGHT = 5;
const TEXT_COUNT_MAX = 5;
const SNIPPET = 140;

const input = document.getElementById("search");
const list = document.getElementById("found");
let selected = 0;

function count(text, word) {
  return Math.min(text.split(word).length - 1, TEXT_COUNT_MAX);
}

function score(passage, words) {
  const title = passage.title.toLowerCase();
  const page = passage.page.toLowerCase();
  const text = passage.text.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const points = (title.includes(word) ? TITLE_WEIGHT : 0) + (page.includes(word) ? PAGE_WEIGHT : 0) + count(text, word);
    if (points === 0) return 0;
    sum += points;
  }
  return sum;
}

function search(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return PASSAGES.map((passage) => ({ passage, points: score(passage, words) }))
    .filter((result) => result.points > 0)
    .sort((a, b) => b.points - a.points)
    .slice(0, RESULTS_MAX)
    .map((result) => ({ ...result.passage, snippet: snippet(result.passage.text, words) }));
}

function snippet(text, words) {
  const at = Math.max(0, text.toLowerCase().indexOf(words[0]) - 40);
  return (at > 0 ? "…" : "") + text.slice(at, at + SNIPPET);
}

function row(result, index) {
  const link = document.createElement("a");
  link.href = UP + result.url;
  link.id = `found-${index}`;
  link.setAttribute("role", "option");
  const title = document.createElement("b");
  title.textContent = result.title === result.page ? result.title : `${result.title} · ${result.page}`;
  const text = document.createElement("small");
  text.textContent = result.snippet;
  link.append(title, text);
  return link;
}

function select(index) {
  const options = list.querySelectorAll("[role=option]");
  if (options.length === 0) return;
  selected = (index + options.length) % options.length;
  options.forEach((option, i) => option.setAttribute("aria-selected", String(i === selected)));
  options[selected].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", options[selected].id);
}

function show() {
  const query = input.value.trim();
  const results = search(query);
  list.replaceChildren(...results.map(row));
  if (query && results.length === 0) {
    const nothing = document.createElement("p");
    nothing.textContent = "Nothing found.";
    list.append(nothing);
  }
  list.hidden = !query;
  input.setAttribute("aria-expanded", String(!list.hidden));
  input.removeAttribute("aria-activedescendant");
  select(0);
}

input.addEventListener("input", show);
input.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") select(selected + 1);
  else if (event.key === "ArrowUp") select(selected - 1);
  else if (event.key === "Enter") list.querySelector("[aria-selected=true]")?.click();
  else if (event.key === "Escape") input.blur();
  else return;
  event.preventDefault();
});
input.addEventListener("focus", show);
document.addEventListener("click", (event) => {
  if (!event.target.closest(".search")) list.hidden = true;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, textarea")) return;
  event.preventDefault();
  input.focus();
});
