// Making and changing elements. Whatever comes from a job is text: nothing here takes HTML.

export const byId = (id) => document.getElementById(id);

// An element with attributes, and children that are elements or text.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null).map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

// Changes nothing where the text is there already, so that selections and readers of the screen are left alone.
export function setText(element, text) {
  const wanted = text === undefined || text === null ? '' : String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

export function show(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
}

// Makes the children of `parent` those of `items`, in their order; elements are kept by their key.
export function keyed(parent, items, keyOf, create, update) {
  const old = parent.keyed ?? new Map();
  const now = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const element = old.get(key) ?? create(item);
    now.set(key, element);
    update(element, item);
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
  }
  for (const [key, element] of old) if (!now.has(key)) element.remove();
  parent.keyed = now;
}

// Copies text also where the page is not served by HTTPS or loopback, where browsers have no clipboard for it.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make('textarea', { class: 'offscreen', 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}

export function remember(key, value) {
  try {
    localStorage.setItem(`lockstep-${key}`, JSON.stringify(value));
  } catch {
    // Storage is forbidden: it is forgotten with the page.
  }
}

export function remembered(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`lockstep-${key}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}
