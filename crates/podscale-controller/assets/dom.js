// Building and updating elements. Text always goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else set(element, name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

/** An HTML element. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Sets an attribute if it differs; null and false remove it. */
export function set(element, name, value) {
  if (value == null || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/** Sets the text if it differs, so that nothing is drawn or read out again without need. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Makes the children of an element follow a list: each item keeps its element. */
export function keyed(parent, items, keyOf, create, update) {
  const known = (parent.keyedChildren ??= new Map());
  const wanted = new Set(items.map(keyOf));
  for (const [key, child] of known) {
    if (!wanted.has(key)) {
      child.remove();
      known.delete(key);
    }
  }
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let child = known.get(key);
    if (!child) {
      child = create(item);
      known.set(key, child);
    }
    update?.(child, item);
    if (child === place) {
      place = place.nextElementSibling;
    } else {
      // Moving an element takes the focus from it.
      const focused = child.contains(document.activeElement) ? document.activeElement : null;
      parent.insertBefore(child, place);
      focused?.focus({ preventScroll: true });
    }
  }
}
