import { readFileSync } from 'node:fs';
import { packageRoot } from '../../platform/package-root.ts';

type Values = Readonly<Record<string, string | number | boolean>>;

/**
 * A text of `assets/texts/`, read once. It names values as `{{name}}`; the lines between `{{#name}}` and `{{/name}}`
 * stand where the value is true or not empty, those after `{{^name}}` where it is not. Nothing is escaped.
 */
export function textFile(name: string): (values: Values) => string {
  const text = readFileSync(new URL(`assets/texts/${name}`, packageRoot), 'utf8');

  return (values) => {
    const valueOf = (key: string) => {
      const value = values[key];
      if (value === undefined) throw new Error(`${name} has no value for ${key}`);
      return value;
    };
    // Values last, so that one cannot begin a part.
    return text
      .replace(/\{\{([#^])(\w+)\}\}\n([^]*?)\{\{\/\2\}\}\n/g, (_, sign: string, key: string, part: string) =>
        Boolean(valueOf(key)) === (sign === '#') ? part : '',
      )
      .replace(/\{\{(\w+)\}\}/g, (_, key: string) => String(valueOf(key)));
  };
}
