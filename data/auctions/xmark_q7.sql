-- How many pieces of prose there are: descriptions, annotations and mail addresses.
-- XMark, Query 7, as SQL over the streams of the document; those of pieces anywhere in it are declared here.
-- The end of the document (description.*, annotation.*, emailaddress.*) closes the one group there is.
-- Verdict, followed: refused, group_by never answers, since nothing closes its input.

CREATE TABLE description (kind STRING) USING punctuated_xml
OPTIONS (path '${XMARK}', rowTag 'description', path.kind 'name(..)');

CREATE TABLE annotation (kind STRING) USING punctuated_xml
OPTIONS (path '${XMARK}', rowTag 'annotation', path.kind 'name(..)');

CREATE TABLE emailaddress (kind STRING) USING punctuated_xml
OPTIONS (path '${XMARK}', rowTag 'emailaddress', path.kind 'name(..)');

SELECT COUNT(*) AS pieces
FROM (
  SELECT kind FROM description
  UNION ALL SELECT kind FROM annotation
  UNION ALL SELECT kind FROM emailaddress
);
