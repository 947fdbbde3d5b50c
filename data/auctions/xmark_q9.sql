-- Each person with what they bought, and its name where it is of Europe: null of another region, and all null for those
-- who bought nothing. (XMark has an empty item of another region.)
-- XMark, Query 9, as SQL over the streams of the document.
-- Unique ids (item.id, person.id) purge sales; the end of the closed auctions (closed_auction.*) purges items and
-- people, and tells who bought nothing.
-- Verdict, followed: refused, join-2 never answers, since nothing closes buyer of closed_auction.

CREATE TABLE person USING xmark OPTIONS (path '${XMARK}', stream 'person');
CREATE TABLE closed_auction USING xmark OPTIONS (path '${XMARK}', stream 'closed_auction');
CREATE TABLE item USING xmark OPTIONS (path '${XMARK}', stream 'item');

SELECT p.id, p.name, t.itemref, t.item
FROM person p LEFT JOIN (
  SELECT c.buyer, c.itemref, i.name AS item
  FROM closed_auction c LEFT JOIN (SELECT id, name FROM item WHERE region = 'europe') i ON i.id = c.itemref
) t ON t.buyer = p.id;
