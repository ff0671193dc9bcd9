// Runs in the page, before anything else of it: colours, and what lies on what.

window.measure = (() => {
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [red, green, blue] = channels(colour)
      .slice(0, 3)
      .map((part) => part / 255)
      .map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const isOpaque = (colour) => {
    const [, , , alpha = 1] = channels(colour === "none" ? "0 0 0 0" : colour);
    return alpha === 1;
  };

  // The first colour behind an element of the page.
  const behind = (element) => {
    for (let it = element; it; it = it.parentElement) {
      const colour = getComputedStyle(it).backgroundColor;
      if (isOpaque(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };

  const parts = (svg, names) =>
    [...svg.querySelectorAll(names)].filter((it) => !it.closest(".hints"));

  // The colour behind a text of a picture: the last rectangle that is drawn below it.
  const behindText = (svg, text) => {
    const { x, y, width, height } = text.getBBox();
    const [across, down] = [x + width / 2, y + height / 2];
    const holds = (rect) => {
      const box = rect.getBBox();
      return box.x <= across && across <= box.x + box.width && box.y <= down && down <= box.y + box.height;
    };
    const isBefore = (it) => it.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
    const fill = (it) => getComputedStyle(it).fill;
    const drawn = parts(svg, "rect").filter((it) => isBefore(it) && isOpaque(fill(it)) && holds(it));
    return drawn.length > 0 ? fill(drawn.at(-1)) : behind(svg);
  };

  // Texts of a picture that stand out too little from what is behind them.
  const faintTexts = (svg) =>
    parts(svg, "text")
      .filter((text) => contrast(getComputedStyle(text).fill, behindText(svg, text)) < 4.5)
      .map((text) => text.textContent.trim());

  // Letters are smaller than the box of their line.
  const box = (text) => {
    const { x, y, width, height } = text.getBBox();
    return { left: x, right: x + width, top: y + height * 0.2, bottom: y + height * 0.8 };
  };
  const meet = (one, other) =>
    one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

  // Texts of a picture that lie on others, or on lines and markers of data, as pairs.
  const overlaps = (svg) => {
    const texts = parts(svg, "text").map((text) => [text.textContent.trim(), box(text)]);
    const found = [];
    texts.forEach(([name, place], index) => {
      for (const [other, its] of texts.slice(index + 1)) {
        if (meet(place, its)) found.push(`${name} on ${other}`);
      }
    });
    const isData = (it) => it.getAttribute("stroke-width") === "2" || it.matches("circle, polygon");
    for (const shape of parts(svg, "polyline, line, circle, polygon").filter(isData)) {
      const length = shape.getTotalLength();
      for (let at = 0; at <= length; at += 2) {
        const { x, y } = shape.getPointAtLength(at);
        const on = texts.find(([, it]) => it.left < x && x < it.right && it.top < y && y < it.bottom);
        if (on) {
          found.push(`${on[0]} on a ${shape.tagName}`);
          break;
        }
      }
    }
    return found;
  };

  return { behind, contrast, faintTexts, luminance, overlaps };
})();
