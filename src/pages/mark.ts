/** The service's mark: two tracks that a switch joins. */
const paths =
  `<path d="M5 3v18M19 3v4c0 5-14 5-14 10" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round"/>` +
  `<circle cx="19" cy="3" r="2" fill="currentColor"/><circle cx="5" cy="21" r="2" fill="currentColor"/>`;

/** The mark in the colour of the text around it, hidden from assistive technology, since the name stands beside it. */
export const mark = `<svg viewBox="0 0 24 24" aria-hidden="true" focusable="false">${paths}</svg>`;

/** The mark as a file of its own, for tabs and bookmarks; its colour follows the theme of the browser. */
export const faviconSvg =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><style>svg{color:#2959c6}` +
  `@media (prefers-color-scheme:dark){svg{color:#7da5e3}}</style>${paths}</svg>`;
