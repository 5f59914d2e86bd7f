// The picture is whole without this. It zooms into a frame, and searches; nothing is fetched, stored or sent.
(function () {
  "use strict";
  var svg = (document.currentScript && document.currentScript.ownerSVGElement) || document.documentElement;
  var SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
  var plot = svg.querySelector(".frames"), told = svg.querySelector(".told");
  var left = +plot.dataset.left, whole = +plot.dataset.width, cell = +plot.dataset.cell;
  var how = told.textContent;

  var frames = Array.prototype.map.call(plot.children, function (g) {
    var rect = g.querySelector("rect"), text = g.querySelector("text");
    var title = g.querySelector("title").textContent;
    return {
      g: g, rect: rect, text: text, title: title, searched: title.toLowerCase(),
      x: +rect.getAttribute("x") - left, width: +rect.getAttribute("width"), y: +rect.getAttribute("y"),
      label: g.dataset.label || (text ? text.textContent : title.split("\n")[0])
    };
  });
  if (!frames.length) return;

  // As many letters as there is room for; what is not ASCII may take two places. `fitted` of words.rs does the same.
  function places(letter) { return letter < "\x80" ? 1 : 2; }
  function fitted(label, width) {
    var room = Math.floor((width - 8) / cell), letters = Array.from(label), used = 1, at = 0;
    if (room < 3) return "";
    if (letters.reduce(function (sum, letter) { return sum + places(letter); }, 0) <= room) return label;
    for (; used + places(letters[at]) <= room; at++) used += places(letters[at]);
    return letters.slice(0, at).join("") + "…";
  }

  function place(frame, x, width) {
    var label = fitted(frame.label, width);
    frame.rect.setAttribute("x", left + x);
    frame.rect.setAttribute("width", width);
    if (!frame.text && label) {
      frame.text = document.createElementNS(SVG, "text");
      frame.text.setAttribute("y", frame.y + 13);
      frame.g.appendChild(frame.text);
    }
    if (!frame.text) return;
    frame.text.setAttribute("x", left + x + 4);
    frame.text.textContent = label;
  }

  // Fills the width with a frame. Those above it go on to both sides, and are shown so.
  function zoom(to) {
    var scale = whole / to.width;
    frames.forEach(function (frame) {
      var begin = Math.max(0, (frame.x - to.x) * scale);
      var end = Math.min(whole, (frame.x + frame.width - to.x) * scale);
      var isSeen = end - begin > 0.01;
      frame.g.style.display = isSeen ? "" : "none";
      frame.g.classList.toggle("above", isSeen && frame.width > to.width && frame.y < to.y);
      if (isSeen) place(frame, begin, end - begin);
    });
    back.style.display = to === frames[0] ? "none" : "";
  }

  // What matches and lies below another match is no more of the width.
  function search(word) {
    var end = 0, sum = 0;
    word = word.trim().toLowerCase();
    frames.forEach(function (frame) {
      var isHit = word !== "" && frame.searched.indexOf(word) >= 0;
      frame.g.classList.toggle("hit", isHit);
      if (isHit && frame.x >= end - 0.001) {
        sum += frame.width;
        end = frame.x + frame.width;
      }
    });
    svg.classList.toggle("searched", word !== "");
    found.textContent = word === "" ? "" : "found in " + (100 * sum / whole).toFixed(1) + " % of all";
  }

  function written(className, x, y, words) {
    var text = document.createElementNS(SVG, "text");
    text.setAttribute("class", className);
    text.setAttribute("x", x);
    text.setAttribute("y", y);
    text.setAttribute("text-anchor", "end");
    text.textContent = words;
    svg.appendChild(text);
    return text;
  }

  var found = written("line", left + whole - 230, 29, ""), back = written("line back", left + whole, 70, "show all   Esc");
  var box = document.createElementNS(SVG, "foreignObject"), field = document.createElementNS(HTML, "input");
  [["x", left + whole - 220], ["y", 12], ["width", 220], ["height", 28]].forEach(function (pair) {
    box.setAttribute(pair[0], pair[1]);
  });
  field.setAttribute("placeholder", "search   /");
  field.setAttribute("aria-label", "search");
  box.appendChild(field);
  svg.appendChild(box);
  back.style.display = "none";

  frames.forEach(function (frame) {
    frame.g.addEventListener("click", function () { zoom(frame); });
    frame.g.addEventListener("mouseenter", function () { told.textContent = frame.title.split("\n").join("  ·  "); });
    frame.g.addEventListener("mouseleave", function () { told.textContent = how; });
  });
  back.addEventListener("click", function () { zoom(frames[0]); });
  field.addEventListener("input", function () { search(field.value); });
  window.addEventListener("keydown", function (event) {
    if (event.key === "/" && event.target !== field) {
      event.preventDefault();
      field.focus();
    } else if (event.key === "Escape") {
      if (field.value === "") zoom(frames[0]);
      field.value = "";
      field.blur();
      search("");
    }
  });
})();
