// For every visible text of the page: its colour against what is really behind it, by WCAG 2 (relative luminance).
// Gives those below AA: 4.5, or 3 for large text; and controls whose edge is below 3 against what is around them.
() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const over = (top, below) => ({
    r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a), b: top.b * top.a + below.b * (1 - top.a), a: 1,
  });
  const channel = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ({ r, g, b }) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ratio = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const chain = (node) => { const all = []; for (let n = node; n; n = n.parentElement) all.push(n); return all; };
  const behind = (node) => chain(node).reverse().reduce((below, n) => over(parse(getComputedStyle(n).backgroundColor), below), { r: 255, g: 255, b: 255, a: 1 });
  const shown = (node) => node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && node.getBoundingClientRect().width > 0;
  const open = document.querySelector("dialog[open]");
  const root = open ?? document.body;
  const wrong = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION"].includes(node.tagName) || !shown(node) || node.closest(":disabled")) continue;
    seen += 1;
    const style = getComputedStyle(node);
    const opacity = chain(node).reduce((o, n) => o * Number(getComputedStyle(n).opacity), 1);
    const back = behind(node);
    const front = over({ ...parse(style.color), a: parse(style.color).a * opacity }, back);
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    const least = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
    const found = ratio(front, back);
    if (found < least) wrong.push(`${text.slice(0, 40)}: ${found.toFixed(2)} of ${least} (${node.tagName}.${node.className})`);
  }
  for (const node of root.querySelectorAll("input, select, textarea, button, .button")) {
    if (!shown(node) || node.disabled) continue;
    const style = getComputedStyle(node), edge = parse(style.borderTopColor);
    if (node.classList.contains("plain")) continue; // looks like a link, needs no edge
    const found = Math.max(ratio(over(edge, behind(node)), behind(node.parentElement)), ratio(behind(node), behind(node.parentElement)));
    if (found < 3) wrong.push(`edge of ${node.tagName} ${node.textContent.slice(0, 30)}: ${found.toFixed(2)} of 3`);
  }
  return { seen, wrong };
}
