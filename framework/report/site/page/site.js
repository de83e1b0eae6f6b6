// The language, which is kept for all pages. What depends on it is told of a change.
var onLanguage = [];
(function () {
  "use strict";
  var select = document.getElementById("language"), language = navigator.language.slice(0, 2);
  try { language = localStorage.getItem("language") || language; } catch (e) { /* nothing is kept then */ }
  select.value = language;
  if (!select.value) select.value = "en";
  function show() {
    speak(select.value);
    onLanguage.forEach(function (f) { f(); });
  }
  select.addEventListener("change", function () {
    try { localStorage.setItem("language", select.value); } catch (e) { /* nothing is kept then */ }
    show();
  });
  show();
})();
// The search of the overview. It is kept in the fragment of the address, so that a link shows what its sender saw.
(function () {
  "use strict";
  var form = document.getElementById("filters"), count = document.getElementById("count");
  if (!form) return;
  var names = ["text", "level"], agreed = document.getElementById("agreed");
  var rows = Array.prototype.slice.call(document.querySelectorAll(".row"));
  var texts = null; // made when somebody searches
  function filter() {
    var text = form.elements.text.value.trim().toLowerCase(), level = form.elements.level.value, shown = 0;
    if (text && !texts) texts = rows.map(function (r) { return r.textContent.toLowerCase(); });
    rows.forEach(function (r, i) {
      var ok = (!level || r.dataset.level === level) && (!text || texts[i].indexOf(text) >= 0);
      r.hidden = !ok;
      if (ok) shown++;
    });
    if (text) agreed.open = true; // or what was searched for would stay folded
    count.textContent = shown === rows.length ? word("count", shown) : word("count-of", shown, rows.length);
  }
  function write() {
    var said = [];
    names.forEach(function (n) {
      var value = form.elements[n].value.trim();
      if (value) said.push(n + "=" + encodeURIComponent(value));
    });
    history.replaceState(null, "", "#" + said.join("&"));
    filter();
  }
  function read() {
    form.reset();
    location.hash.slice(1).split("&").forEach(function (part) {
      var at = part.indexOf("="), field = at > 0 && form.elements[part.slice(0, at)];
      try { if (field) field.value = decodeURIComponent(part.slice(at + 1)); } catch (e) { /* not one of ours */ }
    });
    filter();
  }
  form.addEventListener("input", write);
  form.addEventListener("submit", function (e) { e.preventDefault(); });
  form.addEventListener("reset", function () { setTimeout(write, 0); });
  window.addEventListener("hashchange", read);
  onLanguage.push(function () {
    texts = null;
    filter();
  });
  read();
})();
