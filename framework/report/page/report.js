// Filters are kept in the fragment of the address, so that a link shows what its sender saw. A fragment without "=" is the ID of a requirement.
(function () {
  "use strict";
  var form = document.getElementById("filters"), count = document.getElementById("count");
  var names = ["suite", "level", "feature", "verdict"];
  var all = Array.prototype.slice.call(document.querySelectorAll(".req"));
  var texts = null; // of the requirements, made when somebody searches
  var own = { lang: "en" }; // what the page begins with: the reader's language, if statements are in it
  if (/^(ja|zh)\b/.test(navigator.language)) own.lang = navigator.language.slice(0, 2);
  // Verdicts stand in the address in English.
  function is(r, name, value) { return name === "verdict" ? r.querySelector(".tag").dataset.w === value.replace(/ /g, "-") : r.dataset[name] === value; }
  function filter() {
    var wanted = {}, text = form.elements.text.value.trim().toLowerCase(), shown = 0;
    names.forEach(function (n) { wanted[n] = form.elements[n].value; });
    if (document.documentElement.lang !== form.elements.lang.value) texts = null;
    speak(form.elements.lang.value);
    if (text && !texts) texts = all.map(function (r) { return r.textContent.toLowerCase(); });
    all.forEach(function (r, i) {
      var ok = names.every(function (n) { return !wanted[n] || is(r, n, wanted[n]); }) && (!text || texts[i].indexOf(text) >= 0);
      r.hidden = !ok;
      if (ok) shown++;
    });
    count.textContent = shown === all.length ? word("count", shown) : word("count-of", shown, all.length);
  }
  function write() {
    var said = [];
    names.concat("text", "lang").forEach(function (n) {
      var value = form.elements[n].value.trim();
      if (value && value !== own[n]) said.push(n + "=" + encodeURIComponent(value));
    });
    history.replaceState(null, "", said.length ? "#" + said.join("&") : "#");
    filter();
  }
  function read() {
    var said = location.hash.slice(1), target = null;
    form.reset();
    form.elements.lang.value = own.lang;
    if (said.indexOf("=") >= 0) {
      said.split("&").forEach(function (part) {
        var at = part.indexOf("="), field = form.elements[part.slice(0, at)];
        try { if (field) field.value = decodeURIComponent(part.slice(at + 1)); } catch (e) { /* not one of ours */ }
      });
    } else if (said) {
      target = document.getElementById(said);
    }
    filter();
    if (target && target.classList.contains("req")) {
      target.open = true;
      target.scrollIntoView();
    }
  }
  form.addEventListener("input", write);
  form.addEventListener("submit", function (e) { e.preventDefault(); });
  form.addEventListener("reset", function () { setTimeout(write, 0); });
  window.addEventListener("hashchange", read);
  window.addEventListener("beforeprint", function () {
    all.forEach(function (r) { if (r.querySelector(":scope > summary .bad, :scope > summary .unknown")) r.open = true; });
  });
  document.addEventListener("keydown", function (e) {
    if (e.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      e.preventDefault();
      form.elements.text.focus();
    }
  });
  read();
})();
