-- The names and descriptions of the items in Australia, each description with its markup.
-- XMark, Query 13, as SQL over the streams of the document. `--row-tag item --xml description` writes what XMark asks for.
-- Nothing is kept. The end of a region closes it (item.region).
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE item (id INT NOT NULL, region STRING NOT NULL, name STRING, description STRING) USING punctuated_xml
OPTIONS (path '${XMARK}', rowTag 'item', path.id '@id', prefix.id 'item', path.region 'name(..)',
  path.description 'xml(description)', uniqueIds 'id', sectionEnds 'regions/* region; regions *');

SELECT name AS _name, description FROM item WHERE region = 'australia';
