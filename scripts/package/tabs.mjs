import ts from 'typescript';

/** Code that is indented by tabs and not by four spaces. Texts of several lines stay as they are. */
export function withTabs(code) {
  const texts = [];
  const visit = (node) => {
    if (ts.isTemplateLiteralToken(node)) texts.push([node.getStart(source), node.end]);
    ts.forEachChild(node, visit);
  };
  const source = ts.createSourceFile('code.js', code, ts.ScriptTarget.Latest);
  visit(source);
  let next = 0;
  return code.replace(/^ +/gm, (spaces, at) => {
    while (next < texts.length && texts[next][1] <= at) next += 1;
    const isText = next < texts.length && texts[next][0] < at;
    return isText ? spaces : '\t'.repeat(spaces.length / 4) + ' '.repeat(spaces.length % 4);
  });
}
