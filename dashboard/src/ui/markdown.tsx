import { Lexer, type Token, type Tokens } from "marked";
import { type ReactNode, memo } from "react";
import style from "./markdown.module.css";
import { Code } from "./copy.tsx";

/** Addresses that a link may lead to; others are shown as text. */
const linkPattern = /^(?:https?:|mailto:|\/(?!\/)|#)/i;
const picturePattern = /^data:image\//i;

const entities: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&nbsp;": "\u00a0",
};
const plain = (text: string): string =>
  text.replace(/&(?:amp|lt|gt|quot|#39|nbsp);/g, (entity) => entities[entity] ?? entity);

const childrenOf = (token: Token): readonly Token[] =>
  "tokens" in token && Array.isArray(token.tokens) ? token.tokens : [];

const Parts = ({ tokens }: { tokens: readonly Token[] }): ReactNode =>
  tokens.map((token, index) => <Part key={index} token={token} />);

function LinkShown({ token }: { token: Tokens.Link }) {
  if (!linkPattern.test(token.href)) return <Parts tokens={token.tokens} />;
  return (
    <a href={token.href} target="_blank" rel="noreferrer noopener">
      <Parts tokens={token.tokens} />
    </a>
  );
}

/** Pictures come with the text or not at all: one that is fetched would tell who reads it. */
function PictureShown({ token: { href, text } }: { token: Tokens.Image }) {
  if (picturePattern.test(href)) return <img className={style["picture"]} src={href} alt={text} />;
  if (!linkPattern.test(href)) return <>{text}</>;
  return (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {text === "" ? href : text}
    </a>
  );
}

function ListShown({ token }: { token: Tokens.List }) {
  const items = token.items.map((item, index) => (
    <li key={index}>
      {item.task ? (item.checked ? "☑ " : "☐ ") : null}
      <Parts tokens={item.tokens.filter(({ type }) => type !== "checkbox")} />
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function TableShown({ token: { header, rows } }: { token: Tokens.Table }) {
  const alignOf = ({ align }: Tokens.TableCell): string =>
    style[align === null ? "left" : align] ?? "";
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it (axe, scrollable-region-focusable).
    // biome-ignore lint/a11y/useSemanticElements: a scrolled region, not a group of fields.
    <div className={style["table"]} tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {header.map((cell, index) => (
              <th key={index} className={alignOf(cell)}>
                <Parts tokens={cell.tokens} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, line) => (
            <tr key={line}>
              {row.map((cell, index) => (
                <td key={index} className={alignOf(cell)}>
                  <Parts tokens={cell.tokens} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Headings of a text rank below those of the page. */
function HeadingShown({ token: { depth, tokens } }: { token: Tokens.Heading }) {
  const Heading = depth === 1 ? "h3" : depth === 2 ? "h4" : "h5";
  return (
    <Heading>
      <Parts tokens={tokens} />
    </Heading>
  );
}

const inner = (token: Token): ReactNode => <Parts tokens={childrenOf(token)} />;

/** How each kind of token is shown. What has no row here, such as HTML, is shown as its text. */
const shown: Readonly<Record<string, (token: Token) => ReactNode>> = {
  space: () => null,
  def: () => null,
  heading: (token) => <HeadingShown token={token as Tokens.Heading} />,
  paragraph: (token) => <p>{inner(token)}</p>,
  code: (token) => <Code text={(token as Tokens.Code).text} />,
  blockquote: (token) => <blockquote>{inner(token)}</blockquote>,
  list: (token) => <ListShown token={token as Tokens.List} />,
  table: (token) => <TableShown token={token as Tokens.Table} />,
  hr: () => <hr />,
  br: () => <br />,
  strong: (token) => <strong>{inner(token)}</strong>,
  em: (token) => <em>{inner(token)}</em>,
  del: (token) => <s>{inner(token)}</s>,
  codespan: (token) => <code>{(token as Tokens.Codespan).text}</code>,
  link: (token) => <LinkShown token={token as Tokens.Link} />,
  image: (token) => <PictureShown token={token as Tokens.Image} />,
};

function Part({ token }: { token: Token }): ReactNode {
  const show = shown[token.type];
  if (show !== undefined) return show(token);
  return childrenOf(token).length > 0
    ? inner(token)
    : plain("text" in token ? String(token.text) : token.raw);
}

/**
 * Shows Markdown. Nothing of it is run or fetched: HTML is shown as text, and of pictures only
 * those that are in the text itself.
 */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return (
    <div className={style["text"]}>
      <Parts tokens={Lexer.lex(text, { gfm: true, breaks: true })} />
    </div>
  );
});
