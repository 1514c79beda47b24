import { isIP } from 'node:net';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

/** An independent validator: ajv, for the draft that the schema names. */
export function ajvValidator(schema: unknown): (value: unknown) => boolean {
  const text = JSON.stringify(schema);
  // With the precision, 1.17 is a multiple of 0.01.
  const options = { strict: false, allErrors: false, multipleOfPrecision: 9, ownProperties: true };
  const ajv = text.includes('draft-07') ? new Ajv(options) : new Ajv2020(options);
  formats.default(ajv);
  // Formats of Pydantic that ajv does not know.
  ajv.addFormat('uuid4', /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i);
  ajv.addFormat('ipvanyinterface', (text) => {
    const [address, prefix = '0', ...more] = text.split('/');
    const version = isIP(address!);
    return (
      version > 0 && more.length === 0 && /^\d+$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128)
    );
  });
  for (const hint of ['path', 'file-path', 'directory-path']) ajv.addFormat(hint, true);
  enforceContent(ajv);
  return ajv.compile(schema as object) as (value: unknown) => boolean;
}

/** JSON Schema leaves it open whether the content of strings is validated. */
function enforceContent(ajv: Ajv | Ajv2020): void {
  const keywords = ['contentEncoding', 'contentMediaType', 'contentSchema'];
  for (const keyword of keywords) ajv.removeKeyword(keyword);
  const decoded = (encoding: BufferEncoding, text: string) => Buffer.from(text, encoding).toString(encoding);
  ajv.addKeyword({
    keyword: 'contentEncoding',
    type: 'string',
    validate: (name: string, text: string) => {
      if (name === 'base64') return decoded('base64', text) === text;
      if (name === 'base16') return decoded('hex', text) === text.toLowerCase();
      return name !== '7bit' || Buffer.from(text).every((byte) => byte < 128);
    },
  });
  const isJson = (text: string, isValid: (value: unknown) => boolean): boolean => {
    try {
      return isValid(JSON.parse(text));
    } catch {
      return false;
    }
  };
  ajv.addKeyword({
    keyword: 'contentMediaType',
    type: 'string',
    validate: (type: string, text: string) => type !== 'application/json' || isJson(text, () => true),
  });
  ajv.addKeyword({
    keyword: 'contentSchema',
    type: 'string',
    compile: (schema: unknown) => {
      const isValid = ajvValidator(schema);
      return (text: string) => isJson(text, isValid);
    },
  });
}
