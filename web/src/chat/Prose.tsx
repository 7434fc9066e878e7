/** What an agent says in its replies. */

import { Copyable } from "../components/Copyable";
import { Markdown } from "../components/Markdown";

export function Prose({ text }: { text: string }) {
  return (
    <Copyable text={text} name="the text">
      <Markdown text={text} />
    </Copyable>
  );
}
