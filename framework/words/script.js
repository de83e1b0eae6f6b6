// word is the text of a key in the language of the page; numbers stand in for {1} and so on.
function word(key) {
  var text = words[document.documentElement.lang][key], args = arguments;
  return text === undefined ? undefined : text.replace(/\{(\d)\}/g, function (_, n) { return args[n]; });
}
// speak shows the words of the page in a language, and the statements, which are there in every one. What was found is told in English.
function speak(language) {
  "use strict";
  var root = document.documentElement, spoken = root.lang;
  root.dataset.language = language;
  if (spoken === language) return;
  root.lang = language;
  function each(selector, f) { Array.prototype.forEach.call(document.querySelectorAll(selector), f); }
  each("[data-w]", function (e) {
    var text = word(e.dataset.w);
    if (text !== undefined) e.textContent = text;
  });
  each("[data-l]", function (e) { e.setAttribute("aria-label", word(e.dataset.l)); });
  each("[title]", function (e) { // "NAME: VERDICT"
    e.said = e.said || e.title;
    var at = e.said.lastIndexOf(": "), text = word(e.said.slice(at + 2).replace(/ /g, "-"));
    if (text === undefined) return;
    e.title = e.said.slice(0, at + 2) + text;
    if (e.hasAttribute("aria-label")) e.setAttribute("aria-label", e.title);
  });
  each("pre, dd, h3 > span, .notes > span, .why, .wide table.told td", function (e) { e.lang = "en"; });
  var title = document.querySelector("title");
  if (title.dataset.verdict) document.title = title.dataset.name + ": " + word(title.dataset.verdict);
}
