// Returns the texts inside the elements of a selector whose contrast is below WCAG 2.2's level AA (1.4.3).
const selector = arguments[0];

const parsed = (colour) => {
  const [red, green, blue, alpha = 1] = colour.match(/[\d.]+/g).map(Number);
  return { red, green, blue, alpha };
};
const over = (top, below) => {
  const mixed = (name) => top[name] * top.alpha + below[name] * (1 - top.alpha);
  return { red: mixed("red"), green: mixed("green"), blue: mixed("blue"), alpha: 1 };
};
const backgroundOf = (element) => {
  if (!element) return parsed(matchMedia("(prefers-color-scheme: dark)").matches ? "rgb(18,18,18)" : "rgb(255,255,255)");
  const own = parsed(getComputedStyle(element).backgroundColor);
  return own.alpha === 1 ? own : over(own, backgroundOf(element.parentElement));
};
const luminance = ({ red, green, blue }) => {
  const [r, g, b] = [red, green, blue].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one, other) => {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
};
const needed = (style) => {
  const size = parseFloat(style.fontSize);
  return size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
};

document.getAnimations().forEach((animation) => animation.finish()); // colours on their way to others

const found = { read: 0, faint: [] };
const seen = new Set();
for (const root of document.querySelectorAll(selector)) {
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const text = texts.currentNode.data.trim();
    if (!text || seen.has(texts.currentNode) || !element.checkVisibility()) continue;
    seen.add(texts.currentNode);
    const style = getComputedStyle(element);
    const background = backgroundOf(element);
    const ratio = contrast(over(parsed(style.color), background), background);
    found.read += 1;
    if (ratio < needed(style)) found.faint.push(`${ratio.toFixed(2)} ${style.color} ${element.className || element.tagName}: ${text.slice(0, 40)}`);
  }
}
return found;
