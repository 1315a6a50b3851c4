// Runs in the pages under test: in JavaScript, since the program's own types know no document.

/** What makes the page wider than its window; nothing where it fits. */
globalThis.overflowing = () => {
  const { clientWidth, scrollWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return [];
  const wide = [...document.body.querySelectorAll('*')].filter(
    (element) => element.getBoundingClientRect().right > clientWidth + 1,
  );
  return [`${scrollWidth} px`, ...wide.slice(0, 5).map((element) => element.outerHTML.slice(0, 200))];
};

/** What is badly placed: pictures higher than the window, or cut off at its edge, and what sticks to a button. */
globalThis.misplaced = () => {
  const { clientWidth } = document.documentElement;
  const pictures = [...document.querySelectorAll('main img')].filter((image) => {
    const { right, height } = image.getBoundingClientRect();
    return height > innerHeight || right > clientWidth + 1;
  });
  const next = [...document.querySelectorAll('main button')].flatMap((button) => {
    const after = button.nextElementSibling ?? button.closest('form')?.nextElementSibling;
    const gap = after ? after.getBoundingClientRect().top - button.getBoundingClientRect().bottom : 99;
    return gap >= 0 && gap < 8 ? [after] : [];
  });
  return [...pictures, ...next].map((element) => element.outerHTML.slice(0, 200));
};

/**
 * Blocks of an article that scroll sideways and are no stop for the Tab key; and code that is one and does not scroll,
 * on the widths that this is decided for: those of phones between the narrowest and 48rem have one rule for all.
 */
globalThis.wrongStops = () => {
  const blocks = [...document.querySelectorAll('.text :is(pre, .table, .formula)')].filter((block) => {
    const scrolls =
      block.scrollWidth > block.clientWidth + 1 && getComputedStyle(block).overflowX !== 'visible';
    const isStop = block.tabIndex === 0 && block.checkVisibility({ visibilityProperty: true });
    return scrolls ? !isStop : isStop && block.localName === 'pre' && innerWidth >= 768;
  });
  return blocks.map((block) => block.outerHTML.slice(0, 200));
};

/** Notes in `walked` which of the page's targets gets the focus, and whether that is seen; how many there are. */
globalThis.watchFocus = () => {
  const targets = [...document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]')].filter(
    (element) =>
      element.checkVisibility({ visibilityProperty: true }) && !element.matches(':disabled, [type="hidden"]'),
  );
  globalThis.walked = [];
  document.addEventListener('focusin', ({ target }) => {
    // Boxes that scroll are stops as well, though nothing can be done there.
    if (!targets.includes(target)) return;
    const { outlineStyle, outlineWidth, opacity } = getComputedStyle(target);
    const { width, height, top, bottom } = target.getBoundingClientRect();
    const isShown = outlineStyle !== 'none' && outlineWidth !== '0px' && opacity === '1';
    const isInside = width > 0 && height > 0 && bottom > 0 && top < innerHeight;
    globalThis.walked.push(
      `${targets.indexOf(target)}${isShown ? '' : ' without outline'}${isInside ? '' : ' unseen'}`,
    );
  });
  document.activeElement.blur();
  return targets.length;
};

/** Every description of a feed, parsed as HTML: its text, and how many elements it makes. */
globalThis.descriptions = (source) =>
  [...new DOMParser().parseFromString(source, 'text/xml').querySelectorAll('description')].map(
    ({ textContent }) => {
      const { body } = new DOMParser().parseFromString(textContent, 'text/html');
      return { text: body.textContent, elements: body.childElementCount };
    },
  );

/** `alert` says on the console in which frame of the page it was called. */
globalThis.alert = () => {
  let frame = globalThis;
  while (frame.parent !== frame.parent.parent) frame = frame.parent;
  console.log(`ran in ${frame.name}`);
};

/** Does to every element what would make it run a script; how many there were that had one. */
globalThis.provoke = async () => {
  const found = provokeIn(document);
  // Addresses of scripts, and frames, have their turn later.
  await new Promise((resolve) => setTimeout(resolve, found > 0 ? 300 : 0));
  return found;
};

function provokeIn(root) {
  let found = 0;
  for (const element of root.querySelectorAll('*')) {
    const handlers = element.getAttributeNames().filter((name) => name.startsWith('on'));
    for (const name of handlers) element.dispatchEvent(new Event(name.slice(2), { bubbles: true }));

    const leads = ['href', 'src', 'action', 'formaction', 'data'].some(
      (name) => URL.parse(element.getAttribute(name) ?? '', root.baseURI)?.protocol === 'javascript:',
    );
    const target = element.localName === 'form' ? element.querySelector('button') : element;
    if (leads) target.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }));

    const isActive =
      element.matches('script, iframe, object, embed, base') &&
      element.getAttribute('type') !== 'application/ld+json';
    if (handlers.length > 0 || leads || isActive) found++;
    if (element.contentDocument) found += provokeIn(element.contentDocument);
  }
  return found;
}

/** Sizes of letters and lengths of lines of a post: see `Typography`. */
globalThis.typography = () => {
  const linesOf = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom))).size;
  };
  const paragraph = document.querySelector('.text > p');
  const { fontSize, lineHeight } = getComputedStyle(paragraph);
  const facts = [...document.querySelectorAll('.fact, .disclosure')];
  return {
    size: parseFloat(fontSize),
    leading: parseFloat(lineHeight),
    measure: paragraph.textContent.length / linesOf(paragraph),
    facts: Math.min(...facts.map((fact) => parseFloat(getComputedStyle(fact).fontSize))),
    titleLines: linesOf(document.querySelector('h1')),
    brokenCells: [...document.querySelectorAll('td')].filter(
      (cell) => linesOf(cell.firstElementChild ?? cell) > 1,
    ).length,
    cutCode: [...document.querySelectorAll('pre')].filter((pre) => pre.scrollWidth > pre.clientWidth).length,
  };
};
